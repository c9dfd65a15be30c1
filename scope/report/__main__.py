"""Compare finished runs: python -m scope.report RUN_FOLDER [RUN_FOLDER ...]."""

import argparse
import sys
from pathlib import Path

from scope.artifacts import Refusal
from scope.report import compare


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m scope.report", description=compare.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="RUN_FOLDER", help="runs/NAME or runs/NAME/ARM")
    parser.add_argument("--against", default=compare.REFERENCE, metavar="SYSTEM", help="what differences are taken to")
    parser.add_argument("--suite", action="append", metavar="NAME", help="only this suite; default: all evaluated ones")
    parser.add_argument("--intersection", action="store_true", help="compare the items all runs have in common")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number as JSON too")
    given = parser.parse_args()
    try:
        suites = given.suite or compare.suites_of(given.folders)
        found = [compare.compare(given.folders, given.against, name, given.intersection) for name in suites]
        print("\n\n".join(map(compare.as_text, found)))
        compare.write(found, given.markdown, given.json)
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
