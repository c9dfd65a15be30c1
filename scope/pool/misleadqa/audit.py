"""The human audit: a ranked sample, blinded sheets for six annotators, their answers, agreement (MisleadQA, App. B.2).

sample.json            release, seed, and each item's stratum, annotators and place
sheet_1.csv to _6.csv  what an annotator sees and fills in: three questions, yes or no
results.json           once all are filled in: passes, agreement by question and stratum
adjudication.csv       items whose reviews are not all yes, for a third person to settle
"""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.pool.misleadqa import stage
from scope.pool.misleadqa.release import Release
from scope.pool.questions import PoolError
from scope.pool.release import folder_of
from scope.pool.sheets import answered, ranked, sheet
from scope.recipe import Recipe
from scope.scopes import ABSTENTION, LETTERS, ScopedItem

#: Items of each stratum, annotators, and items that each pair of them shares (App. B.2).
SAMPLED = {
    "minimum_wage time": 15,
    "minimum_wage location": 15,
    "situatedqa time": 35,
    "situatedqa location": 35,
    "ambigdocs entity": 50,
}
ANNOTATORS, PER_PAIR = 6, 10
QUESTIONS = {
    "q1": "G supports the gold answer for the target scope, clearly",
    "q2": "S supports the lure for the same property, clearly, and its scope differs from G's in one element only",
    "q3": "F supports the lure for G's scope, clearly, and is G but for the replaced answer, with no slip of grammar",
}
#: How a No is labelled.
LABELS = ("clear issue", "unsure")
_ANSWERS = {"yes": True, "y": True, "no": False, "n": False}
_SHOWN = ("item_id", "question", "A", "B", "C", "D", "E", "gold", "lure", "target", "alternative", "G", "S", "F")


def run(recipe: Recipe) -> None:
    """Draw the sheets of the recipe's release; where they are there, import the answers."""
    release = stage.frozen(recipe)
    folder = folder_of(recipe).parent / "audit"
    if not (folder / "sample.json").is_file():
        sample = draw(release, recipe.release.audit_seed)
        write_sheets(folder, release, sample)
        short = [f"{name}: {n} of {SAMPLED[name]}" for name, n in sample["strata"].items() if n < SAMPLED[name]]
        print(f"{len(sample['items'])} items, {ANNOTATORS} sheets in {folder}; fill in q1 to q3, then run audit again")
        print("".join(f"warning: {line}\n" for line in short), end="")
        return
    sample = json.loads((folder / "sample.json").read_text("utf-8"))
    if sample["release"] != release.digest:
        raise PoolError(f"{folder}: was drawn from another release; move it away, and draw again")
    reviews = read_sheets(folder, sample)
    found = results(sample, reviews)
    artifacts.write_json(folder / "results.json", found)
    if not (folder / "adjudication.csv").exists():  # never over what a person has written
        artifacts.write_text(folder / "adjudication.csv", adjudication_sheet(sample, reviews))
    print(f"{found['passed']} of {found['items']} items pass in both reviews; both agree on {found['agree']}")
    for question, each in found["questions"].items():
        print(f"{question}: {each['yes']} yes of {each['judgments']}, agreement {each['agreement']:.2f} %")
    print(f"results: {folder / 'results.json'}; to settle: {folder / 'adjudication.csv'}")


# ---------------------------------------------------------------- drawing


def draw(release: Release, seed: int) -> dict[str, Any]:
    """The sample: the first items of each stratum by the SHA-256 of seed and id, and the two annotators of each.

    Hash domains of their own decide the pairs and the order in which an annotator sees items. Each pair shares
    PER_PAIR items where the strata are full, else as near to it as the items allow.
    """
    strata: dict[str, list[ScopedItem]] = {
        name: [item for item in release.split("main") if item.group == name] for name in SAMPLED
    }
    chosen: list[ScopedItem] = []
    for name, members in strata.items():
        chosen += sorted(members, key=lambda item: ranked(seed, "sample", item.id))[: SAMPLED[name]]
    pairs = list(itertools.combinations(range(1, ANNOTATORS + 1), 2))
    items: dict[str, dict[str, Any]] = {}
    for place, item in enumerate(sorted(chosen, key=lambda item: ranked(seed, "pairs", item.id))):
        items[item.id] = {"stratum": item.group, "annotators": list(pairs[place % len(pairs)])}
    return {
        "release": release.digest,
        "version": release.version,
        "seed": seed,
        "strata": dict(Counter(item.group for item in chosen)),
        "items": dict(sorted(items.items())),
        "orders": {
            str(annotator): sorted(
                (id for id, each in items.items() if annotator in each["annotators"]),
                key=lambda id, annotator=annotator: ranked(seed, f"order/{annotator}", id),  # type: ignore[misc]
            )
            for annotator in range(1, ANNOTATORS + 1)
        },
    }


def write_sheets(folder: Path, release: Release, sample: Mapping[str, Any]) -> None:
    """A sheet for each annotator, without stratum, source or the other annotator; then `sample.json`."""
    items = {item.id: item for item in release.items}
    for annotator, ids in sample["orders"].items():
        head = (*_SHOWN, *(f"{name}: {said}" for name, said in QUESTIONS.items()), "label", "note")
        rows = [(*_shown(items[id], place), "", "", "", "", "") for place, id in enumerate(ids, 1)]
        artifacts.write_text(folder / f"sheet_{annotator}.csv", sheet(head, rows))
    artifacts.write_json(folder / "sample.json", sample)


def _shown(item: ScopedItem, place: int) -> tuple[str, ...]:
    """What an annotator sees; the item goes by its place, for its id names its source."""
    scopes = ("; ".join(scope.values()) for scope in (item.target, item.alternative))
    key = (f"{letter}. {item.options[LETTERS.index(letter)]}" for letter in (item.gold, item.lure))
    return (str(place), item.question, *item.options, ABSTENTION, *key, *scopes, item.g, item.s, item.f)


# ---------------------------------------------------------------- answers


def read_sheets(folder: Path, sample: Mapping[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    """Item id -> annotator -> q1 to q3, label and note. PoolError names the first row that is not filled in rightly."""
    found: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for annotator, ids in sample["orders"].items():
        for where, row in answered(folder / f"sheet_{annotator}.csv", len(ids)):
            found[ids[int(row["item_id"]) - 1]][int(annotator)] = _review(where, row)
    return dict(found)


def _review(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    review: dict[str, Any] = {}
    for name in QUESTIONS:
        given = next((str(value) for column, value in row.items() if column.startswith(name)), "").strip().casefold()
        if given not in _ANSWERS:
            raise PoolError(f"{where}: {name}: {given!r} is neither yes nor no; answer it")
        review[name] = _ANSWERS[given]
    label, note = str(row.get("label", "")).strip().casefold(), str(row.get("note", "")).strip()
    if not all(review[name] for name in QUESTIONS) and (label not in LABELS or not note):
        raise PoolError(f"{where}: label: a No needs {' or '.join(LABELS)} as label, and a note; write both")
    return {**review, "label": label, "note": note}


def results(sample: Mapping[str, Any], reviews: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Passes, and raw agreement in per cent (chance-corrected coefficients are unstable where nearly all say yes).

    A review passes when all three answers are yes, an item when both of its reviews do.
    """
    both = {id: list(given.values()) for id, given in reviews.items()}
    passes = {id: [all(review[q] for q in QUESTIONS) for review in given] for id, given in both.items()}
    strata: dict[str, dict[str, int]] = {}
    for id, each in sample["items"].items():
        found = strata.setdefault(each["stratum"], {"sampled": 0, "passed": 0})
        found["sampled"] += 1
        found["passed"] += all(passes[id])
    questions = {}
    for name in QUESTIONS:
        agree = sum(len({review[name] for review in given}) == 1 for given in both.values())
        judgments = [review[name] for given in both.values() for review in given]
        questions[name] = {
            "yes": sum(judgments),
            "judgments": len(judgments),
            "agreement": 100 * agree / len(both) if both else 0.0,
        }
    return {
        "release": sample["release"],
        "items": len(both),
        "passed": sum(all(given) for given in passes.values()),
        "agree": sum(len(set(given)) == 1 for given in passes.values()),
        "questions": questions,
        "strata": strata,
    }


def adjudication_sheet(sample: Mapping[str, Any], reviews: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> str:
    """A CSV of the items with a No, for an annotator who has not seen them; it changes no review and no figure."""
    rows = []
    for id, given in sorted(reviews.items()):
        if not all(review[q] for review in given.values() for q in QUESTIONS):
            free = [str(n) for n in range(1, ANNOTATORS + 1) if n not in given]
            said = "; ".join(f"{n}: {_said(review)}" for n, review in sorted(given.items()))
            rows.append((id, " ".join(free), said, "", ""))
    return sheet(("item_id", "may adjudicate", "reviews", "issue confirmed (yes/no)", "reason"), rows)


def _said(review: Mapping[str, Any]) -> str:
    noes = [name for name in QUESTIONS if not review[name]]
    return f"no to {', '.join(noes)} ({review['label']}): {review['note']}" if noes else "all yes"


def all_pairs(sample: Mapping[str, Any]) -> Counter[tuple[int, ...]]:
    """Annotator pair -> items it shares."""
    return Counter(tuple(each["annotators"]) for each in sample["items"].values())
