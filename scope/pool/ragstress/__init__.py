"""Items of RAG-Stress from public question answering sets: sources, foils, edits, layouts, checks, release and audit.

    python -m scope.pool build recipe=ragstress data_dir=../shared/data

The schema of an item is `scope.evidence`. A check is one function of `checks.py`; `custom.py` makes items of anyone's
own rows of question, answer and documents.
"""
