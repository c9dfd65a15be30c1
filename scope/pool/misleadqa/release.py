"""A frozen release: items, membership, report, datasheet and checksums in a folder; what was changed is refused.

items.jsonl        the items, in the schema of `scope.scopes`; `f` is false by construction
membership.jsonl   id, group, cluster and dependency group of each item, and the SHA-256 of its content and contexts
report.json        counts, what was left out and why, checks
README.md          the datasheet, with the front matter of a hub dataset card
SHA256SUMS         of the four files, as `sha256sum -c` reads them
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope.pool import release as freezing
from scope.pool.datasheet import table
from scope.pool.misleadqa import checks
from scope.pool.release import lines
from scope.scopes import ScopedItem, as_row, content_hash, load_scoped

#: Group -> items and clusters of the paper's release (Table 1; groups of ours with its dimension and source).
PAPER = {
    "minimum_wage time": (200, 43),
    "minimum_wage location": (200, 44),
    "situatedqa time": (183, 137),
    "situatedqa location": (184, 116),
    "ambigdocs entity": (192, 192),
    "condambigqa condition": (25, 20),
}


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was read. digest: SHA-256 of its SHA256SUMS; two systems compare only where it is the same."""

    items: list[ScopedItem]
    version: str
    digest: str

    def split(self, name: str) -> list[ScopedItem]:
        """The items of `main` or `condition`."""
        return [item for item in self.items if item.split == name]


def report(
    items: Sequence[ScopedItem], left_out: Mapping[str, Mapping[str, int]], version: str, seed: int, command: str
) -> dict[str, Any]:
    """Everything that the datasheet shows, as plain data; nothing in it depends on when or where it was made."""
    findings = checks.check_items(items)
    groups = {}
    for name, (in_paper, clusters) in PAPER.items():
        members = [item for item in items if item.group == name]
        groups[name] = {
            "items": len(members),
            "clusters": len({item.cluster for item in members}),
            "dependency_groups": len({item.dependency_group for item in members}),
            "paper_items": in_paper,
            "paper_clusters": clusters,
            "licenses": sorted({item.license for item in members}),
            "methods": dict(sorted(Counter(item.provenance["method"] for item in members).items())),
        }
    by_check = Counter(finding.check for finding in findings)
    return {
        "version": version,
        "seed": seed,
        "command": command,
        "groups": groups,
        "left_out": {name: dict(reasons) for name, reasons in left_out.items()},
        "checks": {check.__name__: by_check[check.__name__] for check in (*checks.ITEM_CHECKS, *checks.SET_CHECKS)},
        "findings": [str(finding) for finding in findings[:20]],
    }


def freeze(folder: Path, items: Sequence[ScopedItem], found: Mapping[str, Any]) -> Release:
    """Write a release, or find it there already, byte for byte; PoolError where the version is frozen with others."""
    texts = {
        "items.jsonl": lines(as_row(item) for item in items),
        "membership.jsonl": lines(membership(item) for item in items),
        "report.json": json.dumps(found, indent=2, ensure_ascii=False) + "\n",
        "README.md": datasheet(items, found),
    }
    freezing.freeze(folder, texts, found["version"])
    return load_release(folder)


def load_release(folder: str | Path) -> Release:
    """Read a release; PoolError names a file or item that was changed after it was frozen."""
    folder = Path(folder)
    digest = freezing.verified(folder, "MisleadQA")
    items = load_scoped(folder / "items.jsonl")
    freezing.refuse_changed(folder, items, membership, "hashes or groups")
    return Release(items, freezing.version_of(folder), digest)


def membership(item: ScopedItem) -> dict[str, str]:
    """What an item belongs to, and its hashes; `cluster_id` and `analysis_group_id` as App. A.4 names them."""
    contexts = {f"{name}_sha256": hashlib.sha256(getattr(item, name).encode()).hexdigest() for name in ("g", "s", "f")}
    return {
        "id": item.id,
        "source": item.source,
        "dimension": item.dimension,
        "split": item.split,
        "cluster_id": item.cluster,
        "analysis_group_id": item.dependency_group,
        "sha256": content_hash(item),
        **contexts,
    }


# ---------------------------------------------------------------- Markdown


def datasheet(items: Sequence[ScopedItem], found: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    groups = [(name, group) for name, group in found["groups"].items() if group["items"]]
    main = sum(group["items"] for name, group in groups if name != "condambigqa condition")
    parts = [
        _front_matter(found),
        f"# Out-of-scope and false context, release {found['version']}",
        f"{main} questions of the main split and {len(items) - main} of the condition supplement, each with four "
        "options, abstention, and three contexts: G states the answer at the question's scope, S a true fact at "
        "another scope, and F, **which is false by construction**, puts the value of S at the question's scope. "
        "F serves to evaluate models; it is no source of facts and no training data. Schema: `scope/scopes.py`.",
        f"Made by `{found['command']}` (seed {found['seed']}) after MisleadQA, Sec. 3 and App. A; wording and items "
        "are this project's own.",
        "## Composition",
        table(
            ("group", "items", "paper", "clusters", "paper", "dependency groups", "G and S are"),
            [
                (
                    name,
                    g["items"],
                    g["paper_items"],
                    g["clusters"],
                    g["paper_clusters"],
                    g["dependency_groups"],
                    ", ".join(f"{method} ({n})" for method, n in g["methods"].items()),
                )
                for name, g in groups
            ],
        ),
        "## Licences",
        "The whole is handed on under CC BY-SA 4.0, for it holds sentences of Wikipedia. SituatedQA states no licence: "
        "ask its authors before handing its items on.",
        table(("group", "licence of the source"), [(name, "; ".join(g["licenses"])) for name, g in groups]),
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


def _front_matter(found: Mapping[str, Any]) -> str:
    import yaml

    card = {
        "pretty_name": "Out-of-scope and false context",
        "version": found["version"],
        "license": "cc-by-sa-4.0",
        "language": ["en"],
        "task_categories": ["question-answering", "multiple-choice"],
        "tags": ["misleading-context", "evaluation-only"],
        "size_categories": ["n<1K"],
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": "items.jsonl"}]}],
    }
    return "---\n" + yaml.safe_dump(card, sort_keys=False) + "---"
