"""Where items come from: authored scenario families, wrong answers, contexts, checks.

    from scope.pool import build_authored, check_items, write_splits

A family is one function under `authored/`; a phrasing is one line of `signals.toml`.
"""

from scope.pool.build import PoolError, build_authored, split_of, write_splits
from scope.pool.checks import check_items, split_overlap

__all__ = ["PoolError", "build_authored", "check_items", "split_of", "split_overlap", "write_splits"]
