"""Items of MisleadQA from public records: sources, checks, release, screening and audit.

    python -m scope.pool build recipe=misleadqa data_dir=../shared/data

A source is one module with an ORIGIN, a check one function in `checks.py`, every text one line of `wording.toml`.
"""
