"""Where items come from: sources and authored families, wrong answers, contexts, checks, datasheet.

    python -m scope.pool build recipe=pool_authored

A family is one function under `authored/`, a source one function in `sources.py`, a phrasing one
line of `signals.toml`, a check one function in `checks.py`.
"""

from scope.pool.build import build_authored, build_composed
from scope.pool.checks import check_items
from scope.pool.drawing import split_of
from scope.pool.overlap import split_overlap
from scope.pool.questions import PoolError

__all__ = ["PoolError", "build_authored", "build_composed", "check_items", "split_of", "split_overlap"]
