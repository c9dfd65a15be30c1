"""Mining: base model x pool -> quartets (SCOPE paper, Sec. 4; protocol, Mining)."""

import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.conditions import Condition
from scope.engines import Completion, Engine, Sampling, Store, complete, opened, shards, warn_unpinned
from scope.items import Item, Quartet, normalised_question, write_rows
from scope.mining import imported, select
from scope.mining.funnel import funnel, render
from scope.models import ResolvedModel, pick_dtype, resolve_model
from scope.prompts import diagnostic_prompt, load_note, user_prompt
from scope.recipe import Recipe, asset

log = logging.getLogger(__name__)

FOLDER = "mine"


def key(
    recipe: Recipe, pool: dict[str, str], base: ResolvedModel, published: Sequence[Quartet] | None = None
) -> dict[str, Any]:
    """Everything the quartets depend on; published ones need neither note nor engine."""
    shared = {
        "pool": pool,
        "base": recipe.model.base,
        "weights": base.weights_sha256,
        "identity": base.identity,
        "chat_template_kwargs": recipe.model.chat_template_kwargs,
        "mining": recipe.part("mining")["mining"],
    }
    if published is not None:
        return {**shared, "published": imported.content_hash(published)}
    return {
        **shared,
        "dtype": recipe.model.dtype if recipe.engine.kind == "openai" else pick_dtype(recipe.model.dtype),
        "note": artifacts.file_hash(asset(recipe.mining.note)),
        "leaks": artifacts.file_hash(asset(recipe.mining.leak_patterns)),
        "engine": recipe.part("engine")["engine"],
    }


def mine(recipe: Recipe) -> Path:
    """Run the mining stage; returns its folder (`quartets.jsonl`, `funnel.json`, `manifest.json`)."""
    from scope.pool import stage as pool

    if recipe.dry_run:
        from scope.preview import preview

        return preview(recipe)
    if not recipe.mining.quartets:
        load_note(asset(recipe.mining.note))
        select.load_leaks(asset(recipe.mining.leak_patterns))
    published = imported.read(recipe) if recipe.mining.quartets else None
    folder = recipe.folder(FOLDER)
    pools = pool.prepare(recipe)
    resolved = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
    wanted = key(recipe, pools.hashes, resolved, published)
    with artifacts.stage_lock(folder) if shards.is_main() else nullcontext():
        finished = artifacts.is_finished(folder, wanted)
        shards.barrier()
        if finished:
            if shards.is_main():
                print(f"mine: nothing to do, {folder} is up to date")
            return folder
        if shards.is_main():
            artifacts.refuse_other_work(folder, wanted, "mine", recipe.command("mine.py"))
            pool.keep(recipe, pools)
        began = time.monotonic()
        if published is not None:
            quartets, counts = imported.keep_apart(published, pools.evaluation)
            origin = f"read from {recipe.mining.quartets}, {len(published)} stand there"
        else:
            store = Store(recipe.folder("store") / "completions.sqlite")
            with opened(resolved, recipe.model, recipe.engine) as engine:
                warn_unpinned(engine, recipe.model.chat_template_kwargs)
                train = pool.without_control_tokens(pools.train, engine.control_tokens(), recipe.pool.on_bad_row)
                quartets, counts = mine_quartets(recipe, engine, store, train, pools.evaluation)
            origin = f"mined from {len(train)} items"
        if not shards.is_main():
            return folder
        print(render(counts))
        for said in pool.stand_in_lines(pools.stand_ins()):
            print(f"mine: {said}")
        warn_incompetent(recipe, counts)
        if len(quartets) < recipe.mining.min_quartets:
            dropped = ", ".join(f"{n} {select.REASONS[r]}" for r, n in counts["dropped"].items())
            artifacts.write_json(folder / "funnel.json", counts)
            raise artifacts.StageError(
                f"{len(quartets)} quartets were {origin}, mining.min_quartets asks for "
                f"{recipe.mining.min_quartets}; dropped: {dropped or 'none'}. "
                + ("Use a larger file." if published is not None else "Use a larger pool or another base.")
            )
        write_rows(folder / "quartets.jsonl", quartets)
        artifacts.write_json(folder / "funnel.json", counts)
        artifacts.write_json(folder / "timings.json", {"seconds": time.monotonic() - began})
        artifacts.finish(
            folder,
            stage=FOLDER,
            key=wanted,
            outputs=["quartets.jsonl", "funnel.json"],
            seed=recipe.pool_seed,
            counts={"items": counts["items"], "quartets": len(quartets), **pool.instead_count(pools)},
            recipe=recipe.resolved(),
        )
    print(f"mine: {len(quartets)} quartets in {folder}")
    return folder


def mine_quartets(
    recipe: Recipe, engine: Engine, store: Store, items: Sequence[Item], evaluation: Sequence[Item]
) -> tuple[list[Quartet], dict[str, Any]]:
    """The three generations and every filter; returns the quartets and the funnel."""
    held_out = {item.id for item in evaluation} | {normalised_question(item) for item in evaluation}
    shared = {i.id for i in items if i.id in held_out or normalised_question(i) in held_out}
    asked = [item for item in items if item.id not in shared]
    sampling = Sampling(recipe.mining.max_new_tokens)
    prompts = [user_prompt(item, c) for c in (Condition.CLEAN, Condition.MISLEADING) for item in asked]
    names = [f"item {i.id}, {c}" for c in (Condition.CLEAN, Condition.MISLEADING) for i in asked]
    completions = complete(engine, prompts, sampling, store, "mine: clean and misleading", names)
    control_tokens = engine.control_tokens()

    def judged(batch: Sequence[Item], found: Sequence[Completion]) -> dict[str, select.Judged]:
        return {
            item.id: select.judge(item, completion, sampling.max_new_tokens, control_tokens)
            for item, completion in zip(batch, found, strict=True)
        }

    clean = judged(asked, completions[: len(asked)])
    misleading = judged(asked, completions[len(asked) :])
    faults = {i.id: select.rejected_fault(i, misleading[i.id], recipe.mining.rejected) for i in asked}
    unsolved = [i for i in asked if faults[i.id] is None and not select.usable_clean(clean[i.id])]
    diagnostic: dict[str, select.Judged] = {}
    if recipe.mining.fallback == "diagnostic" and unsolved:
        note = load_note(asset(recipe.mining.note))
        notes = [diagnostic_prompt(item, note) for item in unsolved]
        names = [f"item {i.id}, misleading with the note" for i in unsolved]
        diagnostic = judged(unsolved, complete(engine, notes, sampling, store, "mine: diagnostic", names))
    patterns = select.load_leaks(asset(recipe.mining.leak_patterns))
    quartets, fates = [], []
    for item in items:
        fate, quartet = _decide(item, shared, clean, misleading, faults, diagnostic, patterns)
        fates.append(fate)
        if quartet is not None:
            quartets.append(quartet)
    return quartets, funnel(items, fates, {item_id: j.correct for item_id, j in clean.items()})


def _decide(
    item: Item,
    shared: set[str],
    clean: dict[str, select.Judged],
    misleading: dict[str, select.Judged],
    faults: dict[str, str | None],
    diagnostic: dict[str, select.Judged],
    patterns: Any,
) -> tuple[str, Quartet | None]:
    if item.id in shared:
        return "shared_with_evaluation", None
    if fault := faults[item.id]:
        return fault, None
    if select.usable_clean(clean[item.id]):
        chosen, source = clean[item.id], "clean"
    elif item.id not in diagnostic:
        return "no_fallback", None
    elif fault := select.diagnostic_fault(diagnostic[item.id], patterns):
        return fault, None
    else:
        chosen, source = diagnostic[item.id], "diagnostic"
    quartet = select.make_quartet(item, chosen, source, misleading[item.id])
    return (source, quartet) if quartet else ("identical", None)


def warn_incompetent(recipe: Recipe, counts: dict[str, Any]) -> None:
    """Print the sentence of `incompetent`, if there is one."""
    if said := incompetent(recipe, counts):
        print(f"warning: {said}")


def incompetent(recipe: Recipe, counts: dict[str, Any]) -> str | None:
    """A sentence where the base solves too little of the pool to have a solution of its own to weigh; else None.

    counts: of the funnel, also of one that imported quartets left empty.
    """
    accuracy = counts.get("clean_accuracy")
    if accuracy is None or accuracy >= recipe.mining.competent_accuracy:
        return None
    return (
        f"{recipe.model.base} solves {100 * accuracy:.1f} % of this pool by itself "
        f"(mining.competent_accuracy={recipe.mining.competent_accuracy:g}); where a base has no solution of its "
        "own, resistance is bought with correct-context accuracy, so use an easier pool or a stronger base"
    )
