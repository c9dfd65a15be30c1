"""Build, check, show or describe the pools of a recipe.

build   make both pools; write them with report and datasheet to the run's pool folder
check   print every finding and the shortcut baselines; exit with 1 if there are findings
show    print an item under its four conditions: item=ID, or item=NUMBER with pool=train or evaluation
card    print the datasheet
screen  MisleadQA: have a model judge six criteria of every item; only `fail` flags one, a person decides
audit   MisleadQA and RAG-Stress: draw the annotators' sheets, or import them where they are filled in

With pool.kind=misleadqa or ragstress (the recipes of these names) all of them are about a frozen release of its items.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from scope import launch
from scope.conditions import Condition
from scope.items import Item
from scope.pool import checks, overlap, release, shortcuts, stage
from scope.pool.datasheet import datasheet
from scope.pool.misleadqa import audit as misleadqa_audit
from scope.pool.misleadqa import screen
from scope.pool.misleadqa import stage as misleadqa
from scope.pool.questions import PoolError
from scope.pool.ragstress import audit as ragstress_audit
from scope.pool.ragstress import stage as ragstress
from scope.prompts import user_prompt
from scope.recipe import Recipe, nearest


def build(recipe: Recipe) -> None:
    pools = stage.prepare(recipe)
    folder = stage.keep(recipe, pools)
    found = stage.report_of(recipe)
    for which, pool in found["pools"].items():
        print(f"{which}: {pool['items']} items in {folder / which}.{recipe.pool.format}")
        if pool["items"] < pool["asked"]:
            print(f"warning: {which}: {pool['asked']} items were asked for; the datasheet says what was left out")
        for margin, values in pool["composition"].items():
            off = [f"{name} {v['items']} of {v['target']}" for name, v in values.items() if _off(v)]
            if off:
                print(f"warning: {which}: {margin.replace('_', ' ')} off target: {', '.join(off)}")
    for said in stage.stand_in_lines(pools.stand_ins()):
        print(f"warning: {said}")
    for row in found["licences"]:
        if row["redistributable"] is False:
            print(f"warning: the licence of {row['source']} ({row['license']}) forbids handing its items on")
    print(f"{_count(found)} findings; datasheet: {folder / 'README.md'}")


def check(recipe: Recipe) -> None:
    pools = stage.prepare(recipe)
    both = {"train": pools.train, "evaluation": pools.evaluation}
    sentences = [f"{which}: {fault}" for which, items in both.items() for fault in checks.check_items(items)]
    sentences += overlap.split_overlap(both, recipe.pool.near_duplicate)
    sentences += stage.apart(recipe, pools.train, pools.evaluation)
    print("".join(f"{sentence}\n" for sentence in sentences), end="")
    for which, items in both.items():
        print(f"\nshortcut baselines, {which}\n{shortcuts.render(shortcuts.report(items))}")
    print(f"\n{len(sentences)} findings in {len(pools.train)} training and {len(pools.evaluation)} evaluation items")
    if sentences:
        raise SystemExit(1)


def show(recipe: Recipe, item: str, pool: str) -> None:
    from rich.console import Console

    if recipe.pool.kind in RELEASES:
        release.show(recipe, RELEASES[recipe.pool.kind], item)
        return
    if pool not in stage.WHICH:
        raise PoolError(f"pool={pool} is neither train nor evaluation")
    items: list[Item] = getattr(stage.prepare(recipe), pool)
    by_id = {each.id: each for each in items}
    if item.isdecimal() and 1 <= int(item) <= len(items):
        found = items[int(item) - 1]
    elif item in by_id:
        found = by_id[item]
    else:
        hint = f"give a number from 1 to {len(items)}" if item.isdecimal() else nearest(item, list(by_id))
        raise PoolError(f"item={item} is not in the {pool} pool; {hint}")
    console = Console(highlight=False)
    facts = {name: getattr(found, name) for name in ("source", "answer_type", "topic", "tier", "channel", "license")}
    facts |= {"gold": found.gold, "wrong": f"{found.wrong} ({found.wrong_class.replace('_', ' ')})"}
    console.rule(f"[bold]{found.id}")
    for name, value in facts.items():
        if value:
            console.print(f"{name.replace('_', ' '):12} {value}", markup=False)
    for condition in Condition:
        console.rule(str(condition), align="left")
        console.print(user_prompt(found, condition), markup=False)


def card(recipe: Recipe) -> None:
    stage.keep(recipe, stage.prepare(recipe))
    print(datasheet(recipe, stage.report_of(recipe)), end="")


def _off(value: Mapping[str, Any]) -> bool:
    return value["target"] is not None and value["target"] != value["items"]


def _count(found: Mapping[str, Any]) -> int:
    return sum(sum(f["by_check"].values()) for f in found["findings"].values()) + found["overlap"]["pairs"]


#: Kind of pool -> the stage of its releases.
RELEASES = {"misleadqa": misleadqa, "ragstress": ragstress}


def _none(recipe: Recipe) -> None:
    raise PoolError(
        f"pool.kind={recipe.pool.kind} has no such verb; screening is of recipe=misleadqa, audits also of "
        "recipe=ragstress"
    )


def _by_kind(mist: Callable[[Recipe], None], **others: Callable[[Recipe], None]) -> Callable[[Recipe], None]:
    """The verb for the kind of pool that the recipe has."""
    return lambda recipe: {"mist": mist, **others}.get(recipe.pool.kind, _none)(recipe)


def _with(verb: Callable[[Recipe, Any], None], kind: Any) -> Callable[[Recipe], None]:
    return lambda recipe: verb(recipe, kind)


def _of_release(verb: Callable[[Recipe, Any], None], mist: Callable[[Recipe], None]) -> Callable[[Recipe], None]:
    """The verb that all releases share, or that of pools."""
    return _by_kind(mist, **{name: _with(verb, kind) for name, kind in RELEASES.items()})


VERBS: dict[str, Callable[..., None]] = {
    "build": _by_kind(build, misleadqa=misleadqa.build, ragstress=ragstress.build),
    "check": _of_release(release.check, check),
    "show": show,
    "card": _of_release(release.card, card),
    "screen": _by_kind(_none, misleadqa=screen.run),
    "audit": _by_kind(_none, misleadqa=misleadqa_audit.run, ragstress=ragstress_audit.run),
}


def main() -> None:
    verb, words = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if verb not in VERBS:
        print(f"{__doc__}\nusage: python -m scope.pool {'|'.join(VERBS)} recipe=NAME [key=value ...]", file=sys.stderr)
        raise SystemExit(0 if verb in ("-h", "--help") else 2)
    stage_call: Callable[[Recipe], None] = VERBS[verb]
    if verb == "show":
        own = dict(word.split("=", 1) for word in words if word.startswith(("item=", "pool=")))
        words = [word for word in words if not word.startswith(("item=", "pool="))]
        stage_call = partial(show, item=own.get("item", "1"), pool=own.get("pool", "train"))
    launch.main(stage_call, __doc__, words, ["-m", "scope.pool", verb])


if __name__ == "__main__":
    main()
