"""The pool stage: the recipe's training and evaluation items, built or read, checked, and kept apart.

Evaluation items come first; training items must not resemble them, nor the transfer sets that the
recipe excludes.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.items import (
    Item,
    ItemError,
    as_row,
    control_token_faults,
    load_items,
    load_quartets,
    normalised,
    write_rows,
)
from scope.pool import checks, naming, overlap, signals, sources
from scope.pool.build import Avoid, authored_candidates, build_authored, build_composed, with_own_errors
from scope.pool.compose import apportion, targets_of
from scope.pool.custom import custom_questions
from scope.pool.datasheet import datasheet, report
from scope.pool.drawing import AUTHORED
from scope.pool.questions import PoolError, Question
from scope.recipe import Recipe, asset
from scope.tables import TableError, read_rows

log = logging.getLogger(__name__)

FOLDER = "pool"
COMPOSED = "composed"
CUSTOM = "custom"
WHICH = ("train", "evaluation")
#: Our two pools -> the authored split that composed pools draw from.
_SPLIT = {"train": "train", "evaluation": "eval"}


#: Ends the reasons of `Pools.left_out` that are no questions left out: authored items stand in their place ...
REPLACED = "too few questions, authored ones in their place"
#: ... and nothing was kept clear of a transfer set.
UNCLEARED = "cannot be had, training was not kept clear of it"


@dataclass(frozen=True, slots=True)
class Pools:
    """Both pools, the content hash of each, and what was left out of each (`source: reason` -> count)."""

    train: list[Item]
    evaluation: list[Item]
    hashes: dict[str, str]
    left_out: dict[str, Mapping[str, int]]

    def stand_ins(self) -> dict[str, dict[str, int]]:
        """What pool.missing_source=authored let pass; empty if nothing.

        `train` and `evaluation`: source -> authored items in its place. `exclude`: transfer set -> 1.
        """
        found: dict[str, dict[str, int]] = {}
        for which, reasons in self.left_out.items():
            for reason, n in reasons.items():
                name, _, why = reason.partition(": ")
                if why in (REPLACED, UNCLEARED):
                    found.setdefault(which if why == REPLACED else "exclude", {})[name] = n
        return found


def stand_in_lines(found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """`Pools.stand_ins` in a sentence a pool."""
    said = []
    for which, counts in found.items():
        if which == "exclude":
            said.append(f"training was not kept clear of {', '.join(counts)}, which cannot be had")
        else:
            each = ", ".join(f"{n} of {name}" for name, n in counts.items())
            said.append(f"pool.{which}: {sum(counts.values())} authored items in place of {each}")
    return said


def instead_count(pools: Pools) -> dict[str, Any]:
    """For a manifest's counts: `authored_instead`, where anything is."""
    return {"authored_instead": found} if (found := pools.stand_ins()) else {}


def prepare(recipe: Recipe) -> Pools:
    """Training and evaluation items. Writes nothing.

    They are read from the run's pool folder where that holds them already for this recipe, this
    code and these input files.
    """
    found = kept(recipe) or built(recipe)
    for which, items in (("train", found.train), ("evaluation", found.evaluation)):
        if not items:
            source = getattr(recipe.pool, which)
            raise StageError(f"pool.{which}={source} holds no items; name another file or raise pool.n_{which}")
    return found


def evaluation(recipe: Recipe) -> tuple[list[Item], str]:
    """The evaluation items alone, and their content hash."""
    if found := kept(recipe):
        return found.evaluation, found.hashes["evaluation"]
    items, _ = draw(recipe, "evaluation")
    if not items:
        raise StageError(f"pool.evaluation={recipe.pool.evaluation} holds no items; name another file")
    return items, _hash(items)


def _refuse_release(recipe: Recipe) -> None:
    """Refuse a recipe whose kind of pool is a release: there is nothing in it to train or evaluate on as MIST."""
    kind = recipe.pool.kind
    if kind != "mist":
        raise PoolError(
            f"pool.kind={kind} builds a release (python -m scope.pool build recipe={recipe.name}) and no pools to "
            f"train or evaluate on; choose another recipe, and for its items suite={kind}"
        )


def kept(recipe: Recipe) -> Pools | None:
    """The pools in the run's pool folder, or None if they are not there or not up to date."""
    folder = recipe.folder(FOLDER)
    made = artifacts.read_manifest(folder)
    if made and made["key"].get("seed") != recipe.pool_seed:
        there, now = made["key"].get("seed"), recipe.pool_seed
        raise StageError(
            f"{folder}: was drawn with seed {there}, this recipe has {now}; to train on it with another seed give "
            f"trainer.seed={now} beside seed={there}, for another pool set output_dir"
        )
    if not artifacts.is_finished(folder, key(recipe)):
        return None
    train, evaluation = (load_items(folder / f"{which}.{recipe.pool.format}") for which in WHICH)
    hashes = {"train": _hash(train), "evaluation": _hash(evaluation)}
    return Pools(train, evaluation, hashes, report_of(recipe)["left_out"])


def key(recipe: Recipe) -> dict[str, Any]:
    """Everything the pools depend on: recipe, input files, and the code that builds them."""
    pool = recipe.pool
    files = [asset(p) for p in pool.phrasings]
    files += [Path(p) for p in (pool.train, pool.evaluation, pool.questions, *pool.exclude) if Path(p).is_file()]
    files += [Path(pool.own_errors) / name for name in ("items.jsonl", "outcomes.parquet")] if pool.own_errors else []
    if COMPOSED in (pool.train, pool.evaluation) and recipe.data_dir:
        files += sources.local_files(Path(recipe.data_dir), [*targets_of(pool, known_sources()).sources, *pool.exclude])
    code = sorted(p for p in Path(__file__).parent.rglob("*") if p.suffix in (".py", ".toml"))
    return {
        "pool": {k: v for k, v in recipe.part("pool")["pool"].items() if k != "seed"},
        "seed": recipe.pool_seed,
        "inputs": {str(path): artifacts.file_hash(path) for path in files if path.is_file()},
        "code": artifacts.fingerprint([artifacts.file_hash(path) for path in code]),
    }


def known_sources() -> list[str]:
    return [AUTHORED, CUSTOM, *sources.SOURCES]


def keep(recipe: Recipe, pools: Pools) -> Path:
    """Write both pools, their report and datasheet to the run's pool folder, unless they are there."""
    folder, wanted = recipe.folder(FOLDER), key(recipe)
    if artifacts.is_finished(folder, wanted):
        return folder
    composed = [which for which in WHICH if getattr(recipe.pool, which) == COMPOSED]
    targets = {which: targets_of(recipe.pool, known_sources()) for which in composed}
    found = report(recipe, pools, targets)
    names = [f"{which}.{recipe.pool.format}" for which in WHICH]
    with artifacts.stage_lock(folder):
        for name, items in zip(names, (pools.train, pools.evaluation), strict=True):
            write_rows(folder / name, items)
        artifacts.write_json(folder / "report.json", found)
        artifacts.write_text(folder / "README.md", datasheet(recipe, found))
        artifacts.finish(
            folder,
            stage=FOLDER,
            key=wanted,
            outputs=[*names, "report.json", "README.md"],
            seed=recipe.pool_seed,
            counts={"train": len(pools.train), "evaluation": len(pools.evaluation), **instead_count(pools)},
            recipe=recipe.resolved(),
        )
    return folder


def report_of(recipe: Recipe) -> dict[str, Any]:
    """The report of the pools in the run's pool folder."""
    return json.loads((recipe.folder(FOLDER) / "report.json").read_text("utf-8"))


# ---------------------------------------------------------------- building


def built(recipe: Recipe) -> Pools:
    """Both pools made anew, evaluation first, so that training can keep clear of it."""
    pool = recipe.pool
    evaluation, left_out_there = draw(recipe, "evaluation")
    known = {f"the evaluation pool: {item.id}": item.question for item in evaluation}
    uncleared: dict[str, int] = {}
    for name in pool.exclude if pool.train == COMPOSED else ():
        texts = _excluded(recipe, name)
        known |= {f"{name}: {i}": text for i, text in enumerate(texts or ())}
        if texts is None:
            uncleared[f"{name}: {UNCLEARED}"] = 1
    train, left_out = draw(recipe, "train", overlap.Index(known, pool.near_duplicate).find)
    findings = [
        f"{which}: {finding}"
        for which, items in (("train", train), ("evaluation", evaluation))
        if getattr(pool, which) == AUTHORED
        for finding in checks.check_items(items)
    ]
    if AUTHORED in (pool.train, pool.evaluation):
        findings += overlap.split_overlap({"train": train, "evaluation": evaluation})
    findings += apart(recipe, train, evaluation)
    if findings:
        raise StageError(f"the built pool fails its checks: {findings[0]} (and {len(findings) - 1} more)")
    left = {"train": {**left_out, **uncleared}, "evaluation": left_out_there}
    return Pools(train, evaluation, {"train": _hash(train), "evaluation": _hash(evaluation)}, left)


def apart(recipe: Recipe, train: Sequence[Item], evaluation: Sequence[Item]) -> list[str]:
    """What two pools of our own making share though they must not: families, and sentences of contexts.

    Phrasings of the user's own that serve several banks, being too few, may stand in both. Pools that were read
    share what they share; the results' slice `phrasing_seen` shows it.
    """
    pool = recipe.pool
    if not {pool.train, pool.evaluation} <= {AUTHORED, COMPOSED}:
        return []
    allowed = signals.in_several_banks([asset(path) for path in pool.phrasings])
    both = {"train": train, "evaluation": evaluation}
    return overlap.shared_families(both) + overlap.shared_sentences(train, evaluation, allowed)


def remembered(recipe: Recipe) -> overlap.Remembered | None:
    """The sentences that the recipe's model is trained on: its quartets', else its pool's; None before any exist."""
    quartets = recipe.folder("mine") / "quartets.jsonl"
    if quartets.is_file():
        found = load_quartets(quartets)
        added = {
            c: [naming.added(q.prompt_clean, q.prompt(c)) for q in found] for c in Condition if c is not Condition.CLEAN
        }
        return overlap.Remembered(added[Condition.MISLEADING] + added[Condition.CORRECT], added[Condition.IRRELEVANT])
    pools = kept(recipe)
    return overlap.Remembered.of_items(pools.train) if pools else None


def draw(recipe: Recipe, which: str, avoid: Avoid = lambda question: None) -> tuple[list[Item], Mapping[str, int]]:
    """The recipe's `train` or `evaluation` items, and what was left out and why."""
    _refuse_release(recipe)
    pool = recipe.pool
    source: str = getattr(pool, which)
    count: int = getattr(pool, f"n_{which}")
    phrasings = [asset(path) for path in pool.phrasings]
    families = pool.families or None
    if source == AUTHORED:
        split = getattr(pool, f"{which}_split")
        return build_authored(
            count, recipe.pool_seed, split, pool.tier, families, avoid, phrasings, pool.irrelevant
        ), {}
    if source != COMPOSED:
        items = load_items(source, getattr(pool, f"{which}_split"), pool.columns, pool.on_bad_row)
        if 0 < count < len(items):
            log.warning("pool.%s: the first %d of its %d items are taken (pool.n_%s)", which, count, len(items), which)
        return items[:count] if count else items, {}
    targets = targets_of(pool, known_sources())
    wanted = [name for name, share in targets.sources.items() if share]
    if not count and len(wanted) > 1:
        raise PoolError(f"pool.n_{which} is 0; say how many items of {', '.join(wanted)} the pool is to have")
    candidates: list[Question] = []
    refused: Counter[str] = Counter()
    counts = apportion(count, targets.sources)
    for name, n in list(counts.items()):
        if name not in wanted or name == AUTHORED:
            continue
        if name == CUSTOM:
            questions, reasons = custom_questions(pool.questions, pool.columns, which)
        else:
            try:
                questions, reasons = sources.read_source(name, which, recipe.data_dir)
            except (PoolError, TableError) as error:
                if pool.missing_source == "refuse":
                    raise
                log.warning("%s cannot be had: %s", name, error)
                questions, reasons = [], Counter()
        candidates += questions
        refused.update({f"{name}: {reason}": n for reason, n in reasons.items()})
        short = n - sum(bool(question.mistakes) for question in questions)
        if pool.missing_source == "authored" and short > 0:
            log.warning("pool.%s: %d of the %d items of %s are authored instead", which, short, n, name)
            refused[f"{name}: {REPLACED}"] = short
            counts[name], counts[AUTHORED] = n - short, counts.get(AUTHORED, 0) + short
    if AUTHORED in wanted or (pool.missing_source == "authored" and counts.get(AUTHORED)):
        n = counts.get(AUTHORED) or 1000
        candidates += authored_candidates(n, recipe.pool_seed, _SPLIT[which], pool.tier, families)
    if pool.missing_source == "authored" and count:
        targets = replace(targets, sources={name: float(n) for name, n in counts.items()})
    if pool.own_errors:
        candidates, n_own = with_own_errors(candidates, own_errors(Path(pool.own_errors)))
        log.info("pool.own_errors: %d of %d questions have a wrong answer of the base's own", n_own, len(candidates))
    found = build_composed(
        candidates, count or len(candidates), targets, recipe.pool_seed, which, avoid, phrasings, pool.irrelevant
    )
    return found.items, {**refused, **found.left_out}


def _excluded(recipe: Recipe, name: str) -> list[str] | None:
    """The question texts of a transfer set, or of a file of items or questions; None of a set that may be missing."""
    if name in sources.TRANSFER:
        try:
            return sources.transfer_texts(name, recipe.data_dir)
        except (PoolError, TableError) as error:
            if recipe.pool.missing_source == "refuse":
                raise
            # Its suite looks again: what was trained on is never evaluated on.
            log.warning("pool.exclude: nothing is kept clear of %s, which cannot be had: %s", name, error)
            return None
    if not Path(name).exists():
        raise PoolError(f"pool.exclude: {name!r} is neither a file nor one of {', '.join(sources.TRANSFER)}")
    return [row["question"] for _, row in read_rows(Path(name)) if isinstance(row, dict) and row.get("question")]


def own_errors(folder: Path) -> dict[str, str]:
    """Normalised question -> the wrong answer that the base gave when clean (text of an option if it has any).

    folder: what `evaluate.py` wrote; ask it for the base on the items in question
    (`pool.evaluation=… evaluation.systems=[base]`).
    """
    if not (folder / "outcomes.parquet").is_file():
        raise PoolError(f"pool.own_errors={folder} holds no outcomes.parquet; run evaluate.py for the base first")
    items = {item.id: item for item in load_items(folder / "items.jsonl")}
    errors = {}
    for _, row in read_rows(folder / "outcomes.parquet"):
        if isinstance(row, dict) and (row["system"], row["cell"], row["label"]) == ("base", "clean", "wrong"):
            item, value = items[row["item_id"]], row["value"]
            errors[normalised(item.question)] = item.options[ord(value) - ord("A")] if item.options else value
    return errors


def unavailable(recipe: Recipe, which: str) -> dict[str, str]:
    """Source of a composed pool (for `train` also excluded set) -> why it has no file under data_dir.

    Looks for files and reads none; empty where the sources come from the hub, which is not asked.
    """
    pool = recipe.pool
    if not recipe.data_dir:
        return {}
    shares = targets_of(pool, known_sources()).sources
    names = [name for name, share in shares.items() if share] + (list(pool.exclude) if which == "train" else [])
    said = {name: sources.absent(name, which, Path(recipe.data_dir)) for name in names}
    return {name: why for name, why in said.items() if why}


def _hash(items: Iterable[Item]) -> str:
    return artifacts.fingerprint([as_row(item) for item in items])


def without_control_tokens(items: list[Item], control_tokens: Iterable[str], on_bad_row: str) -> list[Item]:
    """The items free of the tokenizer's control tokens; ItemError names the others unless they are skipped."""
    faults = control_token_faults(items, control_tokens)
    if faults and on_bad_row != "skip":
        raise ItemError(list(faults.values()))
    if faults:
        log.warning("skipped %d items with control tokens, the first: %s", len(faults), next(iter(faults.values())))
    return [item for item in items if item.id not in faults]
