"""The human validation of edits: a ranked sample, two annotators' sheets, an adjudicator's, rates (App. B).

sample.json            release, seed, and the items of each source
sheet_1.csv, sheet_2.csv  what an annotator sees and fills in: four labels, yes or no
adjudication.csv       the labels on which the two differ, for a third person
results.json           pass rates by label and source, agreement, Cohen's kappa
validated.txt          ids of the items that pass all four labels, once the adjudicator is done
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from scope import artifacts
from scope.evidence import ORIGINAL, EvidenceItem
from scope.kappa import kappa
from scope.pool.questions import PoolError
from scope.pool.ragstress import stage
from scope.pool.ragstress.release import Release
from scope.pool.release import folder_of
from scope.pool.sheets import answered, filled_rows, ranked, sheet
from scope.recipe import Recipe

LABELS = {
    "foil_supported": "the edited passage supports the foil as an answer to the question",
    "relation_kept": "the edit keeps what the question asks for: only the answer differs, and it is of the same kind",
    "fluent": "the edited passage is grammatical, and reads no worse than the clean one",
    "no_leak": "nothing in the edited passage, and no passage beside it, gives the reference away",
}
ANNOTATORS = (1, 2)
_SHOWN = ("item_id", "question", "reference", "foil", "clean passage", "edited passage", "passages beside it")


def run(recipe: Recipe) -> None:
    """Draw the sheets of the recipe's release; where they are there, import what is filled in, as far as it goes."""
    release = stage.frozen(recipe)
    folder = folder_of(recipe).parent / "audit"
    if not (folder / "sample.json").is_file():
        sample = draw(release, recipe.release.audit_seed, recipe.release.audit_items)
        write_sheets(folder, release, sample)
        by_source = ", ".join(f"{name} {n}" for name, n in sample["sources"].items())
        print(
            f"{len(sample['items'])} items ({by_source}), 2 sheets in {folder}; fill in the labels, then run it again"
        )
        return
    sample = json.loads((folder / "sample.json").read_text("utf-8"))
    if sample["release"] != release.digest:
        raise PoolError(f"{folder}: was drawn from another release; move it away, and draw again")
    reviews = {annotator: read_sheet(folder / f"sheet_{annotator}.csv", sample, annotator) for annotator in ANNOTATORS}
    path = folder / "adjudication.csv"
    if not path.exists():  # never over what a person has written
        artifacts.write_text(path, adjudication_sheet(reviews))
    open_labels = disagreements(reviews)
    decided = adjudicated(path, reviews) if open_labels and _begun(path) else {}
    found = results(sample, reviews, decided)
    artifacts.write_json(folder / "results.json", found)
    for label, each in found["labels"].items():
        print(f"{label}: {_per_cent(each['passed'])} pass, agreement {_per_cent(each['agreement'])}, {_kappa(each)}")
    if open_labels and not decided:
        print(f"{len(open_labels)} labels differ; fill in {path}, then run it again")
        return
    artifacts.write_text(folder / "validated.txt", "".join(f"{id}\n" for id in found["validated"]))
    print(f"{len(found['validated'])} of {found['items']} items pass all labels: {folder / 'validated.txt'}")


def _begun(path: Path) -> bool:
    return any(isinstance(row, dict) and str(row.get("decision", "")).strip() for _, row in filled_rows(path))


# ---------------------------------------------------------------- drawing


def draw(release: Release, seed: int, per_source: int) -> dict[str, Any]:
    """The sample: the first items with evidence of each source by the SHA-256 of seed and id.

    Another hash domain decides the order in which each annotator sees them.
    """
    chosen: list[EvidenceItem] = []
    for name in dict.fromkeys(item.source for item in release.with_evidence):
        members = [item for item in release.with_evidence if item.source == name]
        chosen += sorted(members, key=lambda item: ranked(seed, "sample", item.id))[:per_source]
    if not chosen:
        raise PoolError("the release has no items with evidence to validate; build it from other sources")
    return {
        "release": release.digest,
        "version": release.version,
        "seed": seed,
        "sources": dict(Counter(item.source for item in chosen)),
        "items": {item.id: item.source for item in sorted(chosen, key=lambda item: item.id)},
        "orders": {
            str(annotator): sorted(
                (item.id for item in chosen),
                key=lambda id, annotator=annotator: ranked(seed, f"order/{annotator}", id),  # type: ignore[misc]
            )
            for annotator in ANNOTATORS
        },
    }


def write_sheets(folder: Path, release: Release, sample: Mapping[str, Any]) -> None:
    """A sheet for each annotator, without source or the other's labels; then `sample.json`."""
    items = {item.id: item for item in release.items}
    head = (*_SHOWN, *(f"{name}: {said}" for name, said in LABELS.items()), "note")
    for annotator, ids in sample["orders"].items():
        rows = [(*_shown(items[id], place), *("" for _ in LABELS), "") for place, id in enumerate(ids, 1)]
        artifacts.write_text(folder / f"sheet_{annotator}.csv", sheet(head, rows))
    artifacts.write_json(folder / "sample.json", sample)


def _shown(item: EvidenceItem, place: int) -> tuple[str, ...]:
    """What an annotator sees; the item goes by its place, for its id names its source."""
    layout = item.layouts[ORIGINAL]
    beside = "\n".join(f"[{n}] {document.text}" for n, document in enumerate(item.documents, 1))
    references = "; ".join(item.references[:6])
    return (str(place), item.question, references, item.foil, layout.clean, layout.edited, beside)


# ---------------------------------------------------------------- answers


def read_sheet(path: Path, sample: Mapping[str, Any], annotator: int) -> dict[str, dict[str, bool]]:
    """Item id -> label -> yes; PoolError names the first row that is not filled in rightly."""
    ids = sample["orders"][str(annotator)]
    found: dict[str, dict[str, bool]] = {}
    for where, row in answered(path, len(ids)):
        id = ids[int(row["item_id"]) - 1]
        found[id] = {label: _yes(where, label, row) for label in LABELS}
    return found


def _yes(where: str, label: str, row: Mapping[str, Any]) -> bool:
    given = next((str(value) for column, value in row.items() if column.startswith(label)), "").strip().casefold()
    if given not in ("yes", "y", "no", "n"):
        raise PoolError(f"{where}: {label}: {given!r} is neither yes nor no; answer it")
    return given in ("yes", "y")


def disagreements(reviews: Mapping[int, Mapping[str, Mapping[str, bool]]]) -> list[tuple[str, str]]:
    """(item id, label) on which the two annotators differ, in order of id."""
    one, other = (reviews[annotator] for annotator in ANNOTATORS)
    return [(id, label) for id in sorted(one) for label in LABELS if one[id][label] != other[id][label]]


def adjudication_sheet(reviews: Mapping[int, Mapping[str, Mapping[str, bool]]]) -> str:
    """A CSV of the labels on which the two differ, for a third person: yes or no, with a reason."""
    rows = [(id, label, LABELS[label], "", "") for id, label in disagreements(reviews)]
    return sheet(("item_id", "label", "question", "decision", "reason"), rows)


def adjudicated(path: Path, reviews: Mapping[int, Mapping[str, Mapping[str, bool]]]) -> dict[tuple[str, str], bool]:
    """(item id, label) -> what the adjudicator decided; PoolError unless exactly the open ones are decided."""
    wanted = set(disagreements(reviews))
    found: dict[tuple[str, str], bool] = {}
    for where, row in filled_rows(path):
        if isinstance(row, str):
            raise PoolError(f"{where}: {row}")
        key = str(row.get("item_id", "")), str(row.get("label", ""))
        if key not in wanted or key in found:
            raise PoolError(f"{where}: {key[0]} {key[1]}: is not open, or stands twice; restore the sheet")
        found[key] = _yes(where, "decision", row)
    if missing := wanted - found.keys():
        raise PoolError(f"{path}: {' '.join(min(missing))}: is missing; restore the row and decide it")
    return found


def results(
    sample: Mapping[str, Any],
    reviews: Mapping[int, Mapping[str, Mapping[str, bool]]],
    decided: Mapping[tuple[str, str], bool],
) -> dict[str, Any]:
    """Pass rates, agreement and kappa, as fractions.

    A label passes where both annotators say yes, or the adjudicator does where they differ; an open one does not pass.
    Agreement and kappa are of the two annotators alone. `kappa` is the mean over the labels that have one.
    """
    one, other = (reviews[annotator] for annotator in ANNOTATORS)
    final = {
        id: {label: decided.get((id, label), one[id][label] and other[id][label]) for label in LABELS} for id in one
    }
    passed = [id for id in sorted(final) if all(final[id].values())]
    labels = {}
    for label in LABELS:
        pairs = [(one[id][label], other[id][label]) for id in sorted(one)]
        labels[label] = {
            "passed": fmean(final[id][label] for id in final),
            "agreement": fmean(a == b for a, b in pairs),
            "kappa": kappa(*zip(*pairs, strict=True)),
        }
    kappas = [each["kappa"] for each in labels.values() if each["kappa"] is not None]
    return {
        "release": sample["release"],
        "items": len(final),
        "labels": labels,
        "kappa": fmean(kappas) if kappas else None,
        "all_passed": len(passed) / len(final),
        "sources": {
            name: {"sampled": n, "passed": sum(sample["items"][id] == name for id in passed)}
            for name, n in sample["sources"].items()
        },
        "open": len([key for key in disagreements(reviews) if key not in decided]),
        "validated": passed,
    }


def _per_cent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _kappa(each: Mapping[str, Any]) -> str:
    return "kappa undefined (all answers are one)" if each["kappa"] is None else f"kappa {each['kappa']:.3f}"
