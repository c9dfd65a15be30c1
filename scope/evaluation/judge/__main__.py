"""Agreement of two judges, or of a judge with people, on the same answers.

    python -m scope.evaluation.judge runs/a/scope/evaluate/sycophancy runs/b/scope/evaluate/sycophancy
    python -m scope.evaluation.judge runs/a/scope/evaluate/sycophancy people.csv --column follows

A table is a suite's folder, its outcomes.parquet, or a CSV, JSONL or Parquet file with the columns item_id, system
(not needed where the other table has one system) and the verdicts: true, false, or nothing.
"""

import argparse
import sys
from pathlib import Path

from scope.artifacts import Refusal
from scope.evaluation.judge import agreement


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m scope.evaluation.judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", type=Path, metavar="OUTCOMES_A")
    parser.add_argument("b", type=Path, metavar="OUTCOMES_B")
    parser.add_argument("--column", choices=agreement.COLUMNS, default=agreement.COLUMNS[0], help="which verdict")
    given = parser.parse_args()
    try:
        a, b = (agreement.read(path, given.column) for path in (given.a, given.b))
        print(agreement.as_text(*agreement.compared(a, b), given.column))
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
