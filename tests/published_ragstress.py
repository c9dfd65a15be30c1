"""The published tables of RAG-Stress as answers, item by item: any answers that have the printed rates.

Where a table gives the size of its stratum, its percentages are counts (shared/reference/README.md); else a thousand
questions, all of them in K, have every rate of one decimal exactly. What no table fixes is arbitrary.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import printed
from conftest import SHARED

from scope.evaluation.ragstress.labels import CLOSED, POLICIES
from scope.evaluation.results import Settings, results
from scope.evaluation.suites import SUITES
from scope.evidence import POSITIONS, EvidenceItem

REFERENCE = SHARED / "reference" / "rag_stress"
#: Dataset -> its table, which has the fifteen systems.
GRIDS = {"TriviaQA-RC": "table1_triviaqa", "HotpotQA": "table13_hotpotqa", "SearchQA": "table14_searchqa"}
AUDITED = ("Llama-3-8B", "Qwen3-8B")
SLOTS = ("slot1", "slot2", "slot4")
REPLICATES = 10
WITHIN = 0.05  # of a figure printed with one decimal


def table(name):
    """Rows of a table of the paper."""
    return printed.table(REFERENCE / f"{name}.csv")


def by(name, *keys):
    """Rows of a table by the values of some columns."""
    return printed.by(table(name), *keys)


@cache
def facts():
    return {row["name"]: row["value"] for row in table("facts")}


def models(name):
    """System -> group, in the order of a table of the main evaluation; its printed averages are no systems."""
    return {row["model"]: row["group"] for row in table(name) if row["model"] != "Average"}


# ---------------------------------------------------------------- answers


@cache
def items(n, language="en", source="triviaqa"):
    """n items without evidence, which counting does not look at."""
    return tuple(EvidenceItem(f"{language}{i:04d}", source, language, "?", "gold", "foil") for i in range(n))


def rows(system, asked, labels):
    """Outcome rows of one system. labels: cell -> a label an item, of either matcher."""
    return [
        {"system": system, "item_id": item.id, "cell": cell, "label": label, "exact": label, "n_tokens": 1,
         "finish_reason": "stop"}
        for cell, column in labels.items()
        for item, label in zip(asked, column, strict=True)
    ]  # fmt: skip


def small(name, *panels, resamples=REPLICATES):
    """A suite with few resamples, and with these of its panels if any are named."""
    suite = SUITES[name]

    class Small(type(suite)):
        replicates = resamples
        panels_of = {panel: suite.panels_of[panel] for panel in panels} if panels else suite.panels_of

        def draws(self, where, systems):
            found = super().draws(where, systems)
            return found and replace(found, replicates=resamples)

    return Small()


def counted(suite, asked, labels, groups=()):
    """results.json of all systems' labels. labels: system -> cell -> labels."""
    made = [row for system, own in labels.items() for row in rows(system, asked, own)]
    return results(suite, list(asked), made, Settings(reference="none", groups=dict(groups)))


def mixed(n, **counts):
    """A column of n labels, so many of each and the rest `neither`."""
    column = [label for label, k in counts.items() for _ in range(k)]
    assert len(column) <= n
    return column + ["neither"] * (n - len(column))


def counts(rate, n):
    """The integers that a printed percentage of n may stand for."""
    near = round(rate * n / 100)
    found = [k for k in range(near - 2, near + 3) if abs(100 * k / n - rate) <= WITHIN + 1e-9]
    assert found, f"{rate} is no count of {n}"
    return found


def pair(first, second, difference, n):
    """Counts of two printed percentages of n that have the printed difference, first minus second."""
    fits = [
        (a, b)
        for a in counts(first, n)
        for b in counts(second, n)
        if abs(100 * (a - b) / n - difference) <= WITHIN + 1e-9
    ]
    assert fits, f"no counts of {n} are {first}, {second} and {difference} apart"
    return fits[0]


# ---------------------------------------------------------------- the fifteen systems (Tables 1, 4, 13, 14)


def grid_labels(name):
    """System -> labels of a main table over `items(1000)`: all in K, so that every printed rate is a count."""
    found = by(name, "model", "position", "policy")
    made = {}
    for model in models(name):
        labels = {CLOSED: ["gold"] * 1000}
        for policy in POLICIES:
            for place in POSITIONS:
                row = found[model, place, policy]
                (clean,), (foil,) = counts(row["clean_acc"], 1000), counts(row["mr"], 1000)
                labels[f"clean_{policy}_{place}"] = mixed(1000, gold=clean)
                labels[f"edited_{policy}_{place}"] = mixed(1000, foil=foil, gold=1000 - foil)
        made[model] = labels
    return made


def medqa_labels(names):
    """System -> labels over a thousand English and a thousand Chinese items; the printed rates are means of places."""
    found = by("table4_medqa", "language", "model", "policy")
    made = {}
    for model in names:
        labels = {}
        for language in ("english", "chinese"):
            k = int(found[language, model, "strict"]["n_k"])
            labels.setdefault(CLOSED, []).extend(mixed(1000, gold=k))
            for policy in POLICIES:
                row = found[language, model, policy]
                clean = shared_out(round(row["clean_acc"] * 30), [1000] * 3)
                foil = shared_out(round(row["mr"] * 3 * k / 100), [k] * 3)
                for place, right, wrong in zip(POSITIONS, clean, foil, strict=True):
                    labels.setdefault(f"clean_{policy}_{place}", []).extend(mixed(1000, gold=right))
                    # Foils outside K count in no MR.
                    edited = mixed(k, foil=wrong) + ["foil"] * (1000 - k)
                    labels.setdefault(f"edited_{policy}_{place}", []).extend(edited)
        made[model] = labels
    return made


def shared_out(total, caps, least=None):
    """Integers adding up to a total, each within its bounds and near to its share."""
    least = list(least or [0] * len(caps))
    found, room = least, [cap - low for cap, low in zip(caps, least, strict=True)]
    left = total - sum(least)
    assert 0 <= left <= sum(room), f"{total} does not fit between {least} and {caps}"
    more = [left * each // max(sum(room), 1) for each in room]
    while sum(more) < left:
        more[int(np.argmax(np.subtract(room, more)))] += 1
    return [low + k for low, k in zip(found, more, strict=True)]


# ---------------------------------------------------------------- checks on A and B (Tables 2 and 3)


def position_labels():
    """Dataset/model -> labels over `items(300)` whose counts on K have the printed contrasts of places."""
    made = {}
    for model in ("QA/A", "QA/B"):
        own = {(row["instruction"], row["contrast"]): row for row in table("table2_position")
               if row["dataset_model"] == model}  # fmt: skip
        k = int(own["soft", "end_minus_middle"]["n_k"])
        labels = {CLOSED: mixed(300, gold=k)}
        for policy in POLICIES:
            (last,) = counts(own[policy, "end_minus_middle"]["estimate"], k)
            (first,) = counts(own[policy, "beginning_minus_middle"]["estimate"], k)
            foils = {"beginning": 60 + first, "middle": 60, "end": 60 + last}
            for place in POSITIONS:
                labels[f"clean_{policy}_{place}"] = mixed(300, gold=250)
                # Beside K all follow the foil, and none of them may count.
                labels[f"edited_{policy}_{place}"] = mixed(k, gold=k - foils[place], foil=foils[place])
                labels[f"edited_{policy}_{place}"] += ["foil"] * (300 - k)
        made[model] = labels
    return made


def paraphrase_labels():
    """Model -> labels over `items(1000)`, the same rate at every place: this table's figures are no counts of n_k."""
    versions = {"original": "", "paraphrase_1": "_v1", "paraphrase_2": "_v2"}
    made = {}
    for model in "AB":
        labels = {CLOSED: ["gold"] * 1000}
        for version, suffix in versions.items():
            row = by("table3_paraphrase", "model", "version")[model, version]
            for policy in POLICIES:
                (foil,) = counts(row[f"{policy}_mr"], 1000)
                for place in POSITIONS:
                    labels[f"clean_{policy}_{place}{suffix}"] = ["gold"] * 1000
                    labels[f"edited_{policy}_{place}{suffix}"] = mixed(1000, foil=foil)
        made[model] = labels
    return made


# ---------------------------------------------------------------- decoding profiles (Table 7)

#: Five numbers with mean 0 and standard deviation 1 (n - 1).
SPREAD = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) / np.sqrt(0.625)
K = 400  # thrice as many pairs have any rate of one decimal within 0.042


def decoding_labels():
    """System -> labels over `items(400)`: five seeds with the printed mean and deviation, and the long answers."""
    found = by("table7_decoding", "model", "profile", "policy")
    made = {}
    for model in dict.fromkeys(row["model"] for row in table("table7_decoding")):
        labels = {CLOSED: ["gold"] * K}
        for policy in POLICIES:
            sampled = found[model, "sampling", policy]
            long = found[model, "long_generation", policy]["mr"]
            foils = {f"s{n}": round(3 * K * (sampled["mr"] + sampled["sd"] * z) / 100) for n, z in enumerate(SPREAD, 1)}
            foils["long"] = round(3 * K * long / 100)
            for run, total in foils.items():
                for place, foil in zip(POSITIONS, shared_out(total, [K] * 3), strict=True):
                    labels[f"edited_{policy}_{place}_{run}"] = mixed(K, foil=foil)
        made[model] = labels
    return made


# ---------------------------------------------------------------- the paired audit (Tables 8 to 11, App. C)


def audit_labels():
    """System -> labels over `items(500)` that have all of the audit's figures at once.

    The items are in four blocks: 232 in K of both systems, those in K of this one alone, those in U of this one alone,
    and 135 in U of both.
    """
    common_k, common_u = int(facts()["common_baseline_correct"]), int(facts()["common_baseline_wrong"])
    sizes = {model: int(by("table8_audit", "model", "metric")[model, "hor"]["n"]) for model in AUDITED}
    only = {model: sizes[model] - common_k for model in AUDITED}
    assert common_k + sum(only.values()) + common_u == 500
    made = {}
    for model in AUDITED:
        k = audit_k(model, common_k, only[model])
        u = audit_u(model, common_u, 500 - common_u - sizes[model])
        # K of both, K of the first alone, K of the second alone, U of both.
        here = 232 + only["Llama-3-8B"]
        made[model] = {
            cell: k[cell] + u[cell] if model == "Llama-3-8B" else
            [*k[cell][:232], *u[cell][: here - 232], *k[cell][232:], *u[cell][here - 232 :]]
            for cell in k
        }  # fmt: skip
    return made


def audit_k(model, common, rest):
    """Cell -> labels of K: those of the common stratum first."""
    n = common + rest
    hor = by("table8_audit", "model", "metric")[model, "hor"]
    strict, soft = pair(hor["strict"], hor["soft"], hor["delta"], 3 * n)
    foils = dict(zip(("strict", "soft"), (strict, soft), strict=True))
    ends = contrasts(model, n)
    by_place = {policy: placed(foils[policy], ends[policy]) for policy in POLICIES}
    # On the common stratum strict exceeds soft by as much as Table 11 says.
    (apart,) = counts(by("table11_common_stratum", "metric", "model")["hor", model]["estimate"], 3 * common)
    on_common = {"soft": [k * common // n for k in by_place["soft"]]}
    on_common["strict"] = shared_out(
        sum(on_common["soft"]) + apart,
        [min(common, k) for k in by_place["strict"]],
        [max(0, k - rest) for k in by_place["strict"]],
    )
    clean, both = transitions_of(model, n, by_place)
    # Naming the reference with edited evidence: all of Table 9's contrast is put on K.
    named = {"strict": 150, "soft": 150 - gold_counts(model)[1]}
    labels = {CLOSED: ["gold"] * n}
    for policy in POLICIES:
        (control,) = counts(by("table10_clean_control", "model", "policy")[model, policy]["clean"], 3 * n)
        foil_clean = shared_out(control, [n - k for k in clean[policy]])
        right = shared_out(named[policy], [n - k for k in by_place[policy]])
        for p, place in enumerate(SLOTS):
            here, inside = by_place[policy][p], on_common[policy][p]
            follows = np.zeros(n, bool)
            follows[:inside] = True
            follows[common : common + here - inside] = True
            edited_cell = np.where(follows, "foil", "neither").astype(object)
            edited_cell[np.flatnonzero(~follows)[: right[p]]] = "gold"
            clean_cell = np.full(n, "neither", object)
            shifted, kept = both[policy][p], clean[policy][p]
            clean_cell[np.flatnonzero(follows)[:shifted]] = "gold"
            clean_cell[np.flatnonzero(~follows)[: kept - shifted]] = "gold"
            clean_cell[np.flatnonzero(clean_cell == "neither")[: foil_clean[p]]] = "foil"
            labels[f"clean_{policy}_{place}"] = clean_cell.tolist()
            labels[f"edited_{policy}_{place}"] = edited_cell.tolist()
    return labels


def audit_u(model, common, rest):
    """Cell -> labels of U: those of the common stratum last."""
    n = common + rest
    strict, soft = bcr_counts(model)
    (apart,) = counts(by("table11_common_stratum", "metric", "model")["bcr", model]["estimate"], 3 * common)
    totals = {"soft": (soft * common // n, soft - soft * common // n)}
    totals["strict"] = (totals["soft"][0] + apart, strict - totals["soft"][0] - apart)
    labels = {CLOSED: ["neither"] * n}
    for policy in POLICIES:
        on_common, beside = (
            shared_out(total, [size] * 3) for total, size in zip(totals[policy], (common, rest), strict=True)
        )
        for p, place in enumerate(SLOTS):
            labels[f"clean_{policy}_{place}"] = mixed(rest, gold=beside[p]) + mixed(common, gold=on_common[p])
            labels[f"edited_{policy}_{place}"] = mixed(n, foil=n // 2)
    return labels


def bcr_counts(model):
    row = by("table8_audit", "model", "metric")[model, "bcr"]
    return pair(row["strict"], row["soft"], row["delta"], 3 * int(row["n"]))


def contrasts(model, n):
    """Policy -> end minus beginning on K, as counts whose difference is the printed interaction (App. C.2)."""
    own = {row["contrast"]: row["estimate"] for row in table("appendix_c2_contrasts") if row["model"] == model}
    names = ("strict_end_minus_beginning", "soft_end_minus_beginning", "interaction")
    strict, soft = pair(*(own[name] for name in names), n)
    return {"strict": strict, "soft": soft}


def placed(total, end_less_beginning):
    """Counts at the three slots with this sum, and this difference of the last and the first."""
    first = (total - end_less_beginning) // 3
    return [first, total - 2 * first - end_less_beginning, first + end_less_beginning]


def gold_counts(model):
    """(clean, edited) strict minus soft in naming the reference, of 1500, with the printed interaction (Table 9)."""
    own = {row["arm"]: row["estimate"] for row in table("table9_interaction") if row["model"] == model}
    edited, clean = pair(own["edited"], own["clean"], own["edited_minus_clean"], 1500)
    return clean, edited


def transitions_of(model, n, foils):
    """(policy -> references named with clean evidence at each slot, policy -> those that change to the foil)."""
    name = "llama" if model == "Llama-3-8B" else "qwen"
    changed, share = int(facts()[f"transitions_{name}"]), facts()[f"transition_rate_given_clean_gold_{name}"]
    assert facts()[f"transition_pairs_{name}"] == 6 * n
    strict_u, soft_u = bcr_counts(model)
    apart = gold_counts(model)[0] - (strict_u - soft_u)  # strict minus soft on K
    total = next(
        g for g in range(changed, 6 * n) if abs(100 * changed / g - share) <= WITHIN and (g + apart) % 2 == 0
    )  # fmt: skip
    halves = {"strict": (total + apart) // 2, "soft": (total - apart) // 2}
    gold = {policy: shared_out(halves[policy], [n] * 3) for policy in POLICIES}
    cells = [(policy, p) for policy in POLICIES for p in range(3)]
    shifted = shared_out(
        changed,
        [min(gold[policy][p], foils[policy][p]) for policy, p in cells],
        [max(0, gold[policy][p] + foils[policy][p] - n) for policy, p in cells],
    )
    return gold, {
        policy: [k for k, cell in zip(shifted, cells, strict=True) if cell[0] == policy] for policy in POLICIES
    }
