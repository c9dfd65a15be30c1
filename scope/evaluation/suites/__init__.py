"""Benchmarks, by name. A module here, `NAME.py`, holds one as `SUITE`; that it is here registers it."""

import importlib

from scope.evaluation.suites.base import Suite
from scope.schema import SUITE_NAMES

SUITES: dict[str, Suite] = {name: importlib.import_module(f"{__name__}.{name}").SUITE for name in SUITE_NAMES}
