"""The published tables of MisleadQA as answers, item by item: any answers that have the printed counts.

Per-model percentages are counts (shared/reference/README.md), so every count is recovered as `round(rate * n / 100)`.
Where only a mean over models is printed, integers with that mean are sought. What no table fixes is arbitrary.
"""

import dataclasses
import itertools
from collections import defaultdict
from functools import cache, partial

import numpy as np
import printed as tables
from conftest import SHARED

from scope.scopes import Edit, ScopedItem

REFERENCE = SHARED / "reference" / "misleadqa"
MODELS = ("Qwen3-8B", "Qwen3-14B", "Qwen3-32B-AWQ", "Llama-3.1-8B", "Gemma-3-12B", "OLMo-2-13B")
#: As the CSVs call the groups -> source, dimension, items, clusters (Table 1).
GROUPS = {
    "FRED time": ("minimum_wage", "time", 200, 43),
    "FRED location": ("minimum_wage", "location", 200, 44),
    "SituatedQA time": ("situatedqa", "time", 183, 137),
    "SituatedQA location": ("situatedqa", "location", 184, 116),
    "AmbigDocs entity": ("ambigdocs", "entity", 192, 192),
}
CONDITIONS = {
    "no_context": "none", "g_alone": "g", "s_alone": "s", "f_alone": "f", "g_then_s": "gs", "s_then_g": "sg",
    "g_then_f": "gf", "f_then_g": "fg", "s_with_g": "s_with_g", "f_with_g": "f_with_g",
}  # fmt: skip
OUTCOMES = ("gold", "lure", "abstain", "other")


def table(name):
    """Rows of a table of the paper."""
    return tables.table(REFERENCE / f"{name}.csv")


def by(name, *keys):
    """Rows of a table by the values of some columns."""
    return tables.by(table(name), *keys)


def count(rate, n):
    """The integer behind a printed percentage of n."""
    k = round(rate * n / 100)
    assert abs(100 * k / n - rate) <= 0.005 + 1e-9, f"{rate} is no count of {n}"
    return k


@cache
def items():
    """959 items in five groups and their clusters; situatedqa's clusters do not overlap between its scopes here."""
    made = []
    for group, (source, dimension, size, clusters) in GROUPS.items():
        for n in range(size):
            place = n % clusters
            cluster = f"state {place}" if source == "minimum_wage" else f"{group} {place}"
            dependency = "wages" if source == "minimum_wage" else f"{source} {place // 6}"
            made.append(one(f"{group} {n}", source, dimension, cluster, dependency))
    return tuple(made)


@cache
def supplement():
    return tuple(
        one(f"condition {n}", "condambigqa", "condition", f"c{n % 20}", f"c{n % 20}", split="condition")
        for n in range(25)
    )


def one(id, source, dimension, cluster, dependency, **more):
    return ScopedItem(
        id, source, dimension, f"{id}?", ("1", "2", "3", "4"), "A", "B", "1", "2 then", "2", (Edit(0, 1, "2"),),
        {dimension: "now"}, {dimension: "then"}, cluster, dependency, **more,
    )  # fmt: skip


def rows(system, asked, labels):
    """Outcome rows of one system. labels: cell -> a label an item."""
    return [
        {"system": system, "item_id": item.id, "cell": cell, "label": str(label), "n_tokens": 1,
         "finish_reason": "choice"}
        for cell, column in labels.items()
        for item, label in zip(asked, column, strict=True)
    ]  # fmt: skip


# ---------------------------------------------------------------- counts whose mean is printed


def fit(target, sizes, least, most):
    """Integers between `least` and `most` for which the mean of 100 k / size is `target` within 0.005."""
    sizes, least, most = (np.asarray(column).tolist() for column in (sizes, least, most))
    assert all(low <= high for low, high in zip(least, most, strict=True))
    found = [min(max(round(target * n / 100), low), high) for n, low, high in zip(sizes, least, most, strict=True)]
    share = 100 / len(sizes)
    off = share * sum(k / n for k, n in zip(found, sizes, strict=True)) - target
    moves = list(
        itertools.product(range(len(sizes)), (-7, -2, -1, 1, 2, 7), range(len(sizes)), (-5, -2, -1, 0, 1, 2, 5))
    )

    def after(move, off):
        i, up, j, down = move
        changed = {i: found[i] + up, j: found[j] + down} if i != j else {i: found[i] + up + down}
        if not all(least[n] <= k <= most[n] for n, k in changed.items()):
            return abs(off)
        return abs(off + share * (up / sizes[i] + down / sizes[j]))

    while abs(off) > 0.005:
        best = min(moves, key=partial(after, off=off))
        assert after(best, off) < abs(off), f"no integers of {sizes} have the mean {target}: {found}"
        i, up, j, down = best
        found[i] += up
        found[j] += down
        off += share * (up / sizes[i] + down / sizes[j])
    return found


def complete(sizes, means, fixed, last=0, order=OUTCOMES):
    """Label -> count of each model. means: the printed means; fixed: the labels whose counts are known.

    The labels without counts are fitted one after the other; the last takes what is left, and no less than `last`.
    """
    counts = dict(fixed)
    free = [label for label in order if label not in counts]
    for label in free[:-1]:
        left = np.asarray(sizes) - sum(np.asarray(column) for column in counts.values())
        rest = [other for other in free if other not in counts and other != label]
        least = np.zeros(len(sizes), int) if rest else left
        counts[label] = fit(means[label], sizes, least, left - last if rest else left)
    if free:
        left = np.asarray(sizes) - sum(np.asarray(column) for column in counts.values())
        counts[free[-1]] = left.tolist()
    return [{label: int(counts[label][m]) for label in OUTCOMES} for m in range(len(sizes))]


def fill(column, places, counts):
    """Write labels onto the places, so many of each, in order."""
    written = [label for label, n in counts.items() for _ in range(n)]
    assert len(written) == len(places), f"{len(written)} labels for {len(places)} places"
    for place, label in zip(places, written, strict=True):
        column[place] = label


def less(counts, other):
    return {label: counts[label] - other.get(label, 0) for label in counts}


# ---------------------------------------------------------------- the main split (Tables 2, 14, 15, 16, 25)


@dataclasses.dataclass
class Answered:
    """A model's labels by cell, and the places of its strata."""

    labels: dict
    b: list
    a: list


@cache
def main():
    """Model -> Answered over `items()`, the eight cells."""
    printed, means = by("table2_main", "model"), by("table14_outcomes", "subset", "condition")
    orders, paired = by("table15_order", "model", "context", "order"), by("table16_paired", "order", "model")
    groups = by("table25_group_sizes", "model", "group")
    start, begins = 0, {}
    for group, (_, _, size, _) in GROUPS.items():
        begins[group], start = start, start + size
    found = {}
    for model in MODELS:
        sizes = {group: groups[model, group] for group in GROUPS}
        b = [begins[g] + n for g in GROUPS for n in range(int(sizes[g]["b_size"]))]
        a = [begins[g] + n for g in GROUPS for n in range(int(sizes[g]["a_size"]))]
        assert (len(b), len(a)) == (printed[model]["b_size"], printed[model]["a_size"])
        found[model] = Answered({cell: np.full(959, "other", object) for cell in EIGHT}, b, a)
    every, b_sizes = [959] * 6, [len(found[m].b) for m in MODELS]
    a_sizes = [len(found[m].a) for m in MODELS]
    none = complete(every, means["all", "no_context"], {"gold": b_sizes})
    # G alone is gold on A, not on the rest of B, and on as much outside B as its mean says.
    least = a_sizes
    gold_g = fit(means["all", "g_alone"]["gold"], every, least, np.subtract(959, np.subtract(b_sizes, a_sizes)))
    with_g = complete(every, means["all", "g_alone"], {"gold": gold_g})
    lure = {c: [count(printed[m][f"lr_{c}"], n) for m, n in zip(MODELS, b_sizes, strict=True)] for c in "sf"}
    gold_s = [count(printed[m]["gold_s"], n) for m, n in zip(MODELS, b_sizes, strict=True)]
    # Qwen3-8B's one item of B outside A is `other` with S and with F, else the means on A could not be as printed.
    one_other = np.array([1, 0, 0, 0, 0, 0])
    on_b = {"s": complete(b_sizes, means["b", "s_alone"], {"gold": gold_s, "lure": lure["s"]}, one_other)}
    on_b["f"] = complete(b_sizes, means["b", "f_alone"], {"lure": lure["f"]}, one_other)
    outside = np.subtract(b_sizes, a_sizes)
    on_a = {}
    for context in "sf":
        here = means["a", f"{context}_alone"]
        lost = np.minimum(outside, lure[context])
        lures = fit(here["lure"], a_sizes, np.subtract(lure[context], lost), lure[context])
        on_a[context] = _inside(on_b[context], lures, outside, here, a_sizes)
    for m, model in enumerate(MODELS):
        one = found[model]
        rest = [n for n in range(959) if n not in set(one.b)]
        fill(one.labels["none"], one.b, {"gold": len(one.b)})
        fill(one.labels["none"], rest, less(none[m], {"gold": len(one.b)}))
        fill(one.labels["g"], one.a, {"gold": len(one.a)})
        unhelped = [n for n in one.b if n not in set(one.a)]
        others = {"other": len(unhelped)}
        fill(one.labels["g"], unhelped, others)
        fill(one.labels["g"], rest, less(with_g[m], {"gold": len(one.a), **others}))
        for context in "sf":
            fill(one.labels[context], one.a, on_a[context][m])
            fill(one.labels[context], unhelped, less(on_b[context][m], on_a[context][m]))
    for order, kept_order, cells in (("g_first", "g_first", ("gs", "gf")),
                                     ("misleading_first", "f_first", ("sg", "fg"))):  # fmt: skip
        lures = {c: [count(orders[m, c, order]["lure"], n) for m, n in zip(MODELS, a_sizes, strict=True)] for c in "sf"}
        kept = [int(paired[kept_order, m]["n"]) for m in MODELS]
        names = {cell: name for name, cell in CONDITIONS.items()}
        with_s = complete(a_sizes, means["a", names[cells[0]]], {"gold": kept, "lure": lures["s"]})
        kept_gold = [count(paired[kept_order, m]["gold"], n) for m, n in zip(MODELS, kept, strict=True)]
        kept_lure = [count(paired[kept_order, m]["lure"], n) for m, n in zip(MODELS, kept, strict=True)]
        unkept = np.subtract(a_sizes, kept)
        gold = fit(
            means["a", names[cells[1]]]["gold"], a_sizes, kept_gold,
            np.minimum(kept_gold + unkept - np.subtract(lures["f"], kept_lure), np.subtract(a_sizes, lures["f"])),
        )  # fmt: skip
        with_f = complete(a_sizes, means["a", names[cells[1]]], {"gold": gold, "lure": lures["f"]})
        for m, model in enumerate(MODELS):
            one = found[model]
            fill(one.labels[cells[0]], one.a, with_s[m])
            kept_places, other_places = one.a[: kept[m]], one.a[kept[m] :]  # gold is written first
            inside = {"gold": kept_gold[m], "lure": kept_lure[m]}
            left, free = kept[m] - sum(inside.values()), len(other_places)
            apart = with_f[m]["gold"] - kept_gold[m] + with_f[m]["lure"] - kept_lure[m]
            abstain = min(left, with_f[m]["abstain"])
            inside |= {"abstain": abstain, "other": left - abstain}
            assert apart <= free
            fill(one.labels[cells[1]], kept_places, inside)
            fill(one.labels[cells[1]], other_places, less(with_f[m], inside))
    return found


EIGHT = ("none", "g", "s", "f", "gs", "sg", "gf", "fg")


def _inside(on_b, lures, outside, means, a_sizes):
    """Counts on A: those on B without the labels of the few items of B outside A."""
    made = []
    for counts, lure, n in zip(on_b, lures, outside, strict=True):
        inside, gone = dict(counts), counts["lure"] - lure
        inside["lure"] = lure
        for label in ("other", "gold", "abstain"):
            taken = min(int(n) - gone, inside[label])
            inside[label] -= taken
            gone += taken
        made.append(inside)
    return made


# ---------------------------------------------------------------- the condition supplement (Tables 17, 18)


@cache
def conditions():
    """Model -> labels by cell over `supplement()`."""
    printed, means = by("table17_condition_lure", "model"), by("table18_condition_outcomes", "subset", "condition")
    sizes = [int(printed[m]["n"]) for m in MODELS]
    every, twice = [25] * 6, [2 * n for n in sizes]
    lure = {c: [count(printed[m][f"lr_{c}"], n) for m, n in zip(MODELS, sizes, strict=True)] for c in "sf"}
    both = {c: [count(printed[m][f"rlr_{c}"], n) for m, n in zip(MODELS, twice, strict=True)] for c in "sf"}
    none = complete(every, means["all", "no_context"], {"gold": sizes})
    with_g = complete(every, means["all", "g_alone"], {"gold": fit(96.0, every, sizes, every)})
    few = ("other", "abstain", "gold")  # of so few items the small shares have one solution
    alone = {c: complete(sizes, means["b", f"{c}_alone"], {"lure": lure[c]}, order=few) for c in "sf"}
    beside = {c: complete(twice, means["a", f"{c}_with_g"], {"lure": both[c]}, order=few) for c in "sf"}
    found = {}
    for m, (model, n) in enumerate(zip(MODELS, sizes, strict=True)):
        labels = {cell: np.full(25, "other", object) for cell in EIGHT}
        inside, rest = range(n), range(n, 25)
        fill(labels["none"], inside, {"gold": n})
        fill(labels["none"], rest, less(none[m], {"gold": n}))
        fill(labels["g"], inside, {"gold": n})
        fill(labels["g"], rest, less(with_g[m], {"gold": n}))
        for c in "sf":
            fill(labels[c], inside, alone[c][m])
            halves(labels, (f"g{c}", f"{c}g"), inside, beside[c][m])
        found[model] = labels
    return found


def halves(labels, cells, places, counts):
    """Labels of both orders together, the first half of them in the first order."""
    written = np.full(2 * len(places), "", object)
    fill(written, range(len(written)), counts)
    for cell, half in zip(cells, (written[: len(places)], written[len(places) :]), strict=True):
        for place, label in zip(places, half, strict=True):
            labels[cell][place] = label


# ---------------------------------------------------------------- the context-faithful instruction (Tables 21 to 23)


@cache
def faithful():
    """Model -> labels by cell over `items()`: the eight of `main`, and seven under the instruction."""
    printed, means = by("table22_cf_per_model", "model"), by("table21_cf_outcomes", "condition", "prompt")
    common = {m: int(by("table23_common_subset", "model")[m]["common_size"]) for m in MODELS}
    b_sizes, a_sizes = [len(main()[m].b) for m in MODELS], [len(main()[m].a) for m in MODELS]
    twice = [2 * n for n in a_sizes]

    def counts(column, sizes):
        return [count(printed[m][column], n) for m, n in zip(MODELS, sizes, strict=True)]

    gold_g = counts("g_alone_gold", [959] * 6)
    with_g = complete([959] * 6, means["g_alone", "cf"], {"gold": gold_g})
    fixed = {"lure": counts("s_alone_lure", b_sizes), "abstain": counts("s_alone_abstain", b_sizes)}
    alone = {"s": complete(b_sizes, means["s_alone", "cf"], fixed)}
    alone["f"] = complete(b_sizes, means["f_alone", "cf"], {"lure": counts("f_alone_lure", b_sizes)})
    gold_sg = counts("s_with_g_gold", twice)
    beside = {"s": complete(twice, means["s_with_g", "cf"], {"gold": gold_sg})}
    beside["f"] = complete(twice, means["f_with_g", "cf"], {"abstain": counts("f_with_g_abstain", twice)})
    # Of the gold answers with S and G as many on the common subset as its means say (Sec. 6.2).
    doubled = [2 * common[m] for m in MODELS]
    before = [sum(int(np.sum(main()[m].labels[cell] == "gold")) for cell in ("gs", "sg")) for m in MODELS]
    kept = {
        "original": fit(98.92, doubled, np.subtract(doubled, np.subtract(twice, before)), np.minimum(doubled, before)),
        "cf": fit(
            94.82,
            doubled,
            np.maximum(0, np.subtract(gold_sg, np.subtract(twice, doubled))),
            np.minimum(doubled, gold_sg),
        ),
    }
    found = {}
    for m, model in enumerate(MODELS):
        one = main()[model]
        labels = {**one.labels, **{f"cf_{cell}": np.full(959, "other", object) for cell in EIGHT[1:]}}
        inside = _common_places(one, common[model], kept["original"][m])
        outside = [n for n in range(959) if n not in set(one.a)]
        gold_outside = gold_g[m] - len(inside)
        fill(labels["cf_g"], inside, {"gold": len(inside)})
        fill(labels["cf_g"], outside[:gold_outside], {"gold": gold_outside})
        left = [n for n in [*one.a, *outside[gold_outside:]] if n not in set(inside)]
        fill(labels["cf_g"], left, less(with_g[m], {"gold": gold_g[m]}))
        for c in "sf":
            fill(labels[f"cf_{c}"], one.b, alone[c][m])
        rest = [n for n in one.a if n not in set(inside)]
        gold = {"gold": kept["cf"][m]}
        unkept = {"gold": gold_sg[m] - kept["cf"][m]}
        wrong = less(beside["s"][m], {"gold": gold_sg[m]})
        here = _part(wrong, 2 * len(inside) - gold["gold"])
        halves(labels, ("cf_gs", "cf_sg"), inside, {**here, **gold})
        halves(labels, ("cf_gs", "cf_sg"), rest, {**less(wrong, here), **unkept})
        halves(labels, ("cf_gf", "cf_fg"), one.a, beside["f"][m])
        found[model] = labels
    return found


def _part(counts, n):
    """So many of the labels, in order."""
    taken = {}
    for label, k in counts.items():
        taken[label] = min(k, n - sum(taken.values()))
    return taken


def _common_places(one, size, gold):
    """`size` places of A with `gold` gold answers with S and G, both orders together."""
    by_gold = {k: [] for k in (0, 1, 2)}
    for place in one.a:
        by_gold[sum(one.labels[cell][place] == "gold" for cell in ("gs", "sg"))].append(place)
    for twos in range(len(by_gold[2]) + 1):
        ones = gold - 2 * twos
        zeros = size - twos - ones
        if 0 <= ones <= len(by_gold[1]) and 0 <= zeros <= len(by_gold[0]):
            return sorted([*by_gold[2][:twos], *by_gold[1][:ones], *by_gold[0][:zeros]])
    raise AssertionError(f"no {size} places have {gold} gold answers")


# ---------------------------------------------------------------- the diagnostic sample (Tables 4, 19, 20)


@cache
def sample():
    """200 items, 40 a group."""
    seen = defaultdict(int)
    kept = []
    for item in items():
        seen[item.group] += 1
        if seen[item.group] <= 40:
            kept.append(item)
    return tuple(kept)


@cache
def judged():
    """Model -> labels by cell over `sample()`; the sampled part of B comes first."""
    shown, linked = by("table19_scope_labels", "model", "context"), by("table20_scope_lure_counts", "model", "s_label")
    found = {}
    for model in MODELS:
        n = int(linked[model, "all"]["items"])
        labels = {cell: np.full(200, "other", object) for cell in ("none", "s", "judge_g", "judge_s", "judge_f")}
        labels["none"][:n] = "gold"
        labels["judge_g"][:] = "applicable"
        fill(labels["judge_f"], range(200), {name: int(shown[model, "f"][name]) for name in JUDGEMENTS})
        start = 0
        for name in JUDGEMENTS:
            size, lures = int(linked[model, name]["items"]), int(linked[model, name]["lure"])
            labels["judge_s"][start : start + size] = name
            fill(labels["s"], range(start, start + size), {"lure": lures, "gold": size - lures})
            start += size
        left = {name: int(shown[model, "s"][name] - linked[model, name]["items"]) for name in JUDGEMENTS}
        fill(labels["judge_s"], range(n, 200), left)
        found[model] = labels
    return found


JUDGEMENTS = ("applicable", "not_applicable", "cannot_determine")


@cache
def orders():
    """Model -> labels by cell over `sample()` under three orders, with the means of Table 4."""
    linked = by("table20_scope_lure_counts", "model", "s_label")
    sizes = [int(linked[m, "all"]["items"]) for m in MODELS]
    lures_s = [int(linked[m, "all"]["lure"]) for m in MODELS]
    first, stable_one, stable_mean = table("table4_option_order")
    lures_f = fit(first["lr_f"], sizes, np.zeros(6, int), sizes)
    stable = fit(62.22, sizes, np.full(6, 45), np.full(6, 68))
    on_stable = {}
    for c, lures in (("s", lures_s), ("f", lures_f)):
        least = np.maximum(0, np.subtract(lures, np.subtract(sizes, stable)))
        on_stable[c] = fit(stable_one[f"lr_{c}"], stable, least, np.minimum(stable, lures))
    thrice = [3 * n for n in stable]
    found = {m: {} for m in MODELS}
    for c, lures in (("s", lures_s), ("f", lures_f)):
        most = np.add(on_stable[c], np.multiply(2, stable))
        both = fit(stable_mean[f"lr_{c}"], thrice, on_stable[c], most)
        for m, model in enumerate(MODELS):
            labels = found[model]
            for order in ("{}", "r1_{}", "r2_{}"):
                labels.setdefault(order.format("none"), np.full(200, "other", object))
                labels.setdefault(order.format(c), np.full(200, "other", object))
            labels["none"][: sizes[m]] = "gold"
            labels["r1_none"][: stable[m]] = labels["r2_none"][: stable[m]] = "gold"
            labels["r1_none"][sizes[m] :] = "gold"  # right under another order alone: in neither stratum
            here = on_stable[c][m]
            labels[c][:here] = "lure"
            labels[c][stable[m] : stable[m] + lures[m] - here] = "lure"
            again = both[m] - here
            labels[f"r1_{c}"][: min(again, stable[m])] = "lure"
            labels[f"r2_{c}"][: max(0, again - stable[m])] = "lure"
    return found
