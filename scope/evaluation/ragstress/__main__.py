"""The matcher audit of RAG-Stress: a blind sheet of answers, and how far matcher and people agree.

    python -m scope.evaluation.ragstress sample runs/a/scope/evaluate/ragstress --out sheets
    python -m scope.evaluation.ragstress agreement sheets

Fill in sheets/sheet.csv in between: label (what the answer commits to) is gold, foil, hedge (both) or other; cause says
why a matcher may err on it, alias/format, hedged, multi-entity, explanatory or other, and may stay empty until
`agreement` has named the errors.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scope import artifacts
from scope.artifacts import Refusal
from scope.evaluation.ragstress import audit


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m scope.evaluation.ragstress",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    sample = commands.add_parser("sample", help="draw answers and write a sheet")
    sample.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="a suite's folder of an evaluation")
    sample.add_argument("--out", type=Path, required=True, metavar="SHEETS", help="a new folder")
    sample.add_argument("--per-label", type=_positive, default=audit.PER_LABEL, help="answers of each label")
    sample.add_argument("--seed", type=int, default=audit.SEED)
    sample.add_argument("--column", choices=audit.COLUMNS, default=audit.COLUMNS[0], help="whose labels")
    agreement = commands.add_parser("agreement", help="import a filled sheet")
    agreement.add_argument("sheets", type=Path, metavar="SHEETS")
    given = parser.parse_args(arguments)
    try:
        _sample(given) if given.command == "sample" else _agreement(given)
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _sample(given: argparse.Namespace) -> None:
    made = audit.sample(given.folders, given.out, given.per_label, given.seed, given.column)
    for stratum, n in made["strata"].items():
        if n < given.per_label:
            print(f"warning: {stratum}: there are {n} answers of {given.per_label}")
    print(
        f"{len(made['answers'])} answers in {given.out / 'sheet.csv'}; fill in label, then run: agreement {given.out}"
    )


def _agreement(given: argparse.Namespace) -> None:
    found = audit.agreement(audit.read(given.sheets))
    artifacts.write_json(given.sheets / "agreement.json", found)
    print(audit.as_text(found))


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few; give 1 or more")
    return number


if __name__ == "__main__":
    main()
