"""Benchmarks, by name. A suite declares its items, its cells, and what a completion's outcome is called."""

from scope.evaluation.suites.base import Suite
from scope.evaluation.suites.mist import Mist

SUITES: dict[str, Suite] = {suite.name: suite for suite in (Mist(),)}
