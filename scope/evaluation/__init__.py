"""Evaluation: systems x items x cells -> outcomes -> paired rates (SCOPE paper, Sec. 3.2 and App. B.1)."""

from scope.evaluation.stage import evaluate

__all__ = ["evaluate"]
