"""MisleadQA: what its suites share (MisleadQA, Sec. 3 to 6). A suite each is in `scope.evaluation.suites`.

`items` reads a release, `prompts` words the requests, `labels` counts answers, `suite` is the class they subclass.
"""
