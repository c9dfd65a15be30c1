"""The tables of RAG-Stress's grids: what they hold, and what a reader sees (Tables 1 to 4 and 8 to 11, 13, 14)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from scope.evaluation.paired import Bools, Rate, restricted
from scope.evaluation.ragstress.labels import (
    POLICIES,
    Answers,
    bcr,
    clean_accuracy,
    clean_control,
    follow,
    gold_contrast,
    hedge,
    interaction,
    mr,
    position_contrasts,
    retention,
    transitions,
)
from scope.evaluation.suites.base import Panel
from scope.evidence import EvidenceItem

TITLES = {
    "grid": "clean accuracy on all questions and MR on K, by place",
    "positions": "contrasts of places in MR, by policy",
    "audit": "harmful override (HOR) on K and beneficial correction (BCR) on U, exact answers",
    "interaction": "policy by place: end minus beginning of HOR on K, exact answers",
    "gold": "strict minus soft in naming the reference, all questions, exact answers",
    "control": "the foil with clean evidence and with edited, on K, exact answers",
    "transitions": "from the reference with clean evidence to the foil with edited, on K, exact answers",
    "diagnostics": "what is done with edited evidence",
    "languages": "Chinese minus English",
}
ACROSS = {"common": "strict minus soft on the questions that are in K, or in U, of every system, exact answers"}
COLUMNS = ("clean_strict", "clean_soft", "clean_delta", "mr_strict", "mr_soft", "mr_delta")
WORDS = {
    "clean_strict": "clean acc. strict",
    "clean_soft": "clean acc. soft",
    "clean_delta": "Δ clean acc.",
    "mr_strict": "MR strict",
    "mr_soft": "MR soft",
    "mr_delta": "Δ MR",
    "mean": "mean of the places",
    "k": "HOR on K",
    "u": "BCR on U",
    "delta": "strict - soft",
    "interaction": "interaction",
    "excess": "edited - clean",
    "of_pairs": "of all pairs",
    "of_clean_gold": "of pairs with the reference when clean",
    "retention": "gold retention on K",
    "follow": "conflict follow, all questions",
    "hedge": "hedge on K",
    "both": "both policies",
    "zh_minus_en": "Chinese - English",
}


def place_words(places: Sequence[str]) -> dict[str, str]:
    """What the contrasts of three places are called."""
    first, middle, last = places
    return {
        "last_middle": f"{last} - {middle}",
        "first_middle": f"{first} - {middle}",
        "first_last": f"{first} - {last}",
    }


def metrics(answers: Answers, places: Sequence[str] = ()) -> dict[str, Rate]:
    """The columns of the grid, at some or all places."""
    found: dict[str, Rate] = {}
    for name, rate in (("clean", clean_accuracy), ("mr", mr)):
        soft, strict = (rate(answers, policy, places) for policy in POLICIES)
        found |= {f"{name}_strict": strict, f"{name}_soft": soft, f"{name}_delta": strict - soft}
    return {column: found[column] for column in COLUMNS}


def panels(items: Sequence[EvidenceItem], answers: Answers, exact: Answers) -> dict[str, Panel]:
    """All tables of one system. answers: by the labels of the run; exact: by exact answers, for the audit's."""
    found: dict[str, Panel] = {
        "grid": {**{place: metrics(answers, [place]) for place in answers.places}, "mean": metrics(answers)},
        "positions": {policy: position_contrasts(answers, policy) for policy in POLICIES},
        "audit": {name: _by_policy(rate, exact) for name, rate in (("k", mr), ("u", bcr))},
        "interaction": {"k": interaction(exact)},
        "gold": {"all": _gold(exact)},
        "control": {policy: _control(exact, policy) for policy in POLICIES[::-1]},
        "transitions": {
            "both": transitions(exact),
            **{policy: transitions(exact, [policy]) for policy in POLICIES},
        },
        "diagnostics": {
            policy: {
                "retention": retention(answers, policy),
                "follow": follow(answers, policy),
                "hedge": hedge(answers, policy),
            }
            for policy in POLICIES[::-1]
        },
        "languages": _languages(items, metrics(answers)),
    }
    return found


def _by_policy(rate: Callable[[Answers, str], Rate], answers: Answers) -> dict[str, Rate]:
    soft, strict = (rate(answers, policy) for policy in POLICIES)
    return {"soft": soft, "strict": strict, "delta": strict - soft}


def _gold(exact: Answers) -> dict[str, Rate]:
    clean, edited = (gold_contrast(exact, arm) for arm in ("clean", "edited"))
    return {"clean": clean, "edited": edited, "interaction": edited - clean}


def _control(exact: Answers, policy: str) -> dict[str, Rate]:
    clean, edited = clean_control(exact, policy), mr(exact, policy)
    return {"clean": clean, "edited": edited, "excess": edited - clean}


def _languages(items: Sequence[EvidenceItem], rates: Mapping[str, Rate]) -> Panel:
    """Chinese minus English, each on its own questions; nothing where there is one language (Table 4)."""
    chinese = np.array([item.language == "zh" for item in items])
    if chinese.all() or not chinese.any():
        return {}
    return {
        "zh_minus_en": {name: restricted(rate, chinese) - restricted(rate, ~chinese) for name, rate in rates.items()}
    }


def common(answers: Mapping[str, Answers]) -> dict[str, dict[str, Rate]]:
    """Strict minus soft of each system on the questions that are in the stratum of all (Table 11)."""
    k, u = shared(answers)
    rows: dict[str, dict[str, Rate]] = {"k": {}, "u": {}}
    for name, own in answers.items():
        rows["k"][name] = mr(own, "strict", stratum=k) - mr(own, "soft", stratum=k)
        rows["u"][name] = bcr(own, "strict", stratum=u) - bcr(own, "soft", stratum=u)
    return rows


def shared(answers: Mapping[str, Answers]) -> tuple[Bools, Bools]:
    """Which items are in K, and which in U, of every system."""
    return (
        np.logical_and.reduce([own.k() for own in answers.values()]),
        np.logical_and.reduce([own.u() for own in answers.values()]),
    )
