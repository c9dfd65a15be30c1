"""A frozen release of RAG-Stress: items, membership, report, datasheet and checksums; what was changed is refused.

items.jsonl        the items, in the schema of `scope.evidence`; every edited text is false by construction
membership.jsonl   id, source and kind of each item, and the SHA-256 of its content, its question and its layouts
report.json        counts, positions, what was left out and why (App. D), checks
README.md          the datasheet, with the front matter of a hub dataset card
SHA256SUMS         of the four files, as `sha256sum -c` reads them
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from scope.evidence import ARMS, POSITIONS, EvidenceItem, as_row, content_hash, load_evidence
from scope.pool import release as freezing
from scope.pool.datasheet import table
from scope.pool.ragstress import checks
from scope.pool.ragstress.passages import length
from scope.pool.ragstress.sources import ORIGINS, SOURCES
from scope.pool.ragstress.targets import BOUNDS
from scope.pool.release import lines
from scope.schema import ReleaseConfig

WHAT = "RAG-Stress"


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was read. digest: SHA-256 of its SHA256SUMS; two systems compare only where it is the same."""

    items: list[EvidenceItem]
    version: str
    digest: str

    @property
    def with_evidence(self) -> list[EvidenceItem]:
        """The items that have a target; the others can be asked closed-book alone."""
        return [item for item in self.items if item.layouts]


def report(
    items: Sequence[EvidenceItem],
    left_out: Mapping[str, Mapping[str, int]],
    settings: ReleaseConfig,
    seed: int,
    command: str,
) -> dict[str, Any]:
    """Everything that the datasheet shows, as plain data; nothing in it depends on when or where it was made."""
    findings = checks.check_items(items)
    by_check = Counter(finding.check for finding in findings)
    return {
        "version": settings.version,
        "seed": seed,
        "command": command,
        "settings": {name: getattr(settings, name) for name in SETTINGS},
        "sources": {name: _source([i for i in items if i.source == name]) for name in SOURCES if name in left_out},
        "left_out": {name: dict(reasons) for name, reasons in left_out.items()},
        "bounds": {name: list(bounds) for name, bounds in BOUNDS.items()},
        "checks": {check.__name__: by_check[check.__name__] for check in (*checks.ITEM_CHECKS, *checks.SET_CHECKS)},
        "findings": [str(finding) for finding in findings[:20]],
    }


#: What of a recipe's `release` section the items depend on, beside the sources.
SETTINGS = ("per_source", "target_words", "distractors", "distractor_words", "slot", "titles")


def _source(items: Sequence[EvidenceItem]) -> dict[str, Any]:
    shown = [item for item in items if item.layouts]
    words = [length(item.layouts["original"].clean, item.language) for item in shown]
    return {
        "items": len(items),
        "with_evidence": len(shown),
        "kinds": dict(sorted(Counter(item.answer_kind for item in items).items())),
        "languages": dict(sorted(Counter(item.language for item in items).items())),
        "slots": dict(sorted(Counter(str(item.slot) for item in shown).items())),
        "positions": {name: round(fmean(i.layouts[name].at for i in shown), 3) for name in POSITIONS if shown},
        "target_words": [min(words), round(fmean(words), 1), max(words)] if words else [],
        "licenses": sorted({item.license for item in items}),
    }


def freeze(folder: Path, items: Sequence[EvidenceItem], found: Mapping[str, Any]) -> Release:
    """Write a release, or find it there already, byte for byte; PoolError where the version is frozen with others."""
    texts = {
        "items.jsonl": lines(as_row(item) for item in items),
        "membership.jsonl": lines(membership(item) for item in items),
        "report.json": json.dumps(found, indent=2, ensure_ascii=False) + "\n",
        "README.md": datasheet(found),
    }
    freezing.freeze(folder, texts, found["version"], "items, sources or settings")
    return load_release(folder)


def load_release(folder: str | Path) -> Release:
    """Read a release; PoolError names a file or item that was changed after it was frozen."""
    folder = Path(folder)
    digest = freezing.verified(folder, WHAT)
    items = load_evidence(folder / "items.jsonl")
    freezing.refuse_changed(folder, items, membership, "hashes")
    return Release(items, freezing.version_of(folder), digest)


def membership(item: EvidenceItem) -> dict[str, Any]:
    """What an item belongs to, and its hashes."""
    return {
        "id": item.id,
        "source": item.source,
        "language": item.language,
        "answer_kind": item.answer_kind,
        "evidence": bool(item.layouts),
        "sha256": content_hash(item),
        "question_sha256": _sha(item.question),
        "layouts_sha256": {
            f"{arm} {name}": _sha(getattr(layout, arm)) for name, layout in item.layouts.items() for arm in ARMS
        },
    }


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- Markdown


def datasheet(found: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    sources = found["sources"]
    shown = sum(each["with_evidence"] for each in sources.values())
    rest = sum(each["items"] for each in sources.values()) - shown
    slot = found["settings"]["slot"]
    parts = [
        _front_matter(found, shown + rest),
        f"# Clean and edited evidence, release {found['version']}",
        f"{shown} questions with a target passage, clean and edited, in three layouts and the source's own, and {rest} "
        "questions with options that can be asked closed-book alone. In the edited target the answer is exchanged for "
        "a foil of its kind, so that **every edited text is false by construction**. It serves to evaluate models; it "
        "is no source of facts and no training data. Schema: `scope/evidence.py`.",
        f"Made by `{found['command']}` (seed {found['seed']}) after RAG-Stress, Sec. 3.1 and App. D. The checks are "
        "lexical: whether an edit keeps the queried relation and reads well is for people to say (`audit`).",
        "## Composition",
        table(
            ("source", "items", "with evidence", "kinds of answers", "words of a target: least, mean, most"),
            [
                (
                    name,
                    each["items"],
                    each["with_evidence"],
                    ", ".join(f"{kind} ({n})" for kind, n in each["kinds"].items()),
                    ", ".join(map(str, each["target_words"])),
                )
                for name, each in sources.items()
            ],
        ),
        "## Layouts",
        "Moved is the whole sentence that holds the answer; the others keep their order. The place is the middle of "
        "the answer as a share of the target's characters, measured, and kept within "
        + ", ".join(f"{low:g} to {high:g} ({name})" for name, (low, high) in found["bounds"].items())
        + ". The order of passages is fixed: the target stands "
        + (f"in slot {slot}" if slot else "last")
        + ", so that all cells of an item share everything before it. Titles are "
        + ("shown." if found["settings"]["titles"] else "not shown; `provenance` keeps them."),
        table(
            ("source", *POSITIONS),
            [
                (n, *(f"{each['positions'][p]:.2f}" for p in POSITIONS))
                for n, each in sources.items()
                if each["positions"]
            ],
        ),
        "## Licences",
        "The whole is handed on under CC BY-SA 4.0, for its passages are of Wikipedia. Where a source states no "
        "licence, ask its authors before handing its items on.",
        table(("source", "licence", "data set"), [(name, *_origin(name)) for name in sources]),
        "## Left out",
        *(
            part
            for name, reasons in found["left_out"].items()
            for part in (f"{name}:", table(("reason", "count"), sorted(reasons.items())))
        ),
        "## Checks",
        freezing.checks_table(checks, found),
    ]
    return "\n\n".join(parts) + "\n"


def _origin(name: str) -> tuple[str, str]:
    origin = ORIGINS[name]
    return origin.license, ":".join(part for part in origin.hub[:2] if part) if origin.hub else "local files only"


def _front_matter(found: Mapping[str, Any], n: int) -> str:
    import yaml

    card = {
        "pretty_name": "Clean and edited evidence",
        "version": found["version"],
        "license": "cc-by-sa-4.0",
        "language": sorted({language for each in found["sources"].values() for language in each["languages"]}),
        "task_categories": ["question-answering"],
        "tags": ["retrieval-augmented-generation", "counterfactual-evidence", "evaluation-only"],
        "size_categories": ["n<1K" if n < 1000 else "1K<n<10K" if n < 10_000 else "10K<n<100K"],
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": "items.jsonl"}]}],
    }
    return "---\n" + yaml.safe_dump(card, sort_keys=False) + "---"
