"""Compare finished runs: python -m scope.report RUN_FOLDER [RUN_FOLDER ...]."""

import argparse
import sys
from pathlib import Path

from scope.artifacts import Refusal
from scope.report import compare, folder, published


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m scope.report", description=compare.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="RUN_FOLDER", help="runs/NAME or runs/NAME/ARM")
    parser.add_argument("--against", default=compare.REFERENCE, metavar="SYSTEM", help="what differences are taken to")
    parser.add_argument("--suite", action="append", metavar="NAME", help="only this suite; default: all evaluated ones")
    parser.add_argument("--intersection", action="store_true", help="compare the items all runs have in common")
    parser.add_argument("--published", action="store_true", help="show the paper's numbers beside, marked as such")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write index.html, tables, figures and results.json")
    given = parser.parse_args()
    try:
        found = compare.compare_all(given.folders, given.against, given.suite or (), given.intersection)
        if given.published:
            for suite in found:
                published.check(suite)
        print("\n\n".join(compare.as_text(one, given.published) for one in found.values()))
        if given.out is not None:
            folder.write(given.out, found, given.folders, given.published)
            print(f"\nreport: {given.out / 'index.html'}")
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
