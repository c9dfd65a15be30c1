"""Benchmarks. A suite declares its items, its cells, and what a completion's outcome is called."""

from scope.evaluation.suites import mist

SUITES = {"mist": mist}
