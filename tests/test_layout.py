"""The house rules that a reader relies on: rooms import downwards, entry points stay thin, nothing heavy at the top."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Highest room first.
ROOMS = [
    "publish",
    "launch", "preview", "report", "evaluation", "training", "merge", "mining", "pairs", "mixture", "pool", "asking",
    "engines", "models",
    "gguf", "trie", "prompts", "items", "scopes", "evidence", "matching", "spellings", "published", "forms", "columns",
    "tables", "answers", "numerals",
    "conditions", "recipe", "schema", "artifacts", "kappa",
]  # fmt: skip
#: Rooms below that call one above, each for a reason.
ALLOWED = {
    ("mining", "preview"): "dry_run=true of a stage",
    ("training", "preview"): "dry_run=true of a stage",
    ("evaluation", "preview"): "dry_run=true of a stage",
    ("evaluation", "report"): "the stage prints its table",
    ("training", "evaluation"): "MIST's metrics on a held-out slice while a model trains",
    ("training", "publish"): "push_to, and the cards in the products' folders",
    ("evaluation", "publish"): "the cards with the results in them",
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "scope":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


@pytest.mark.parametrize("path", sorted((ROOT / "scope").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_from_rooms_below(path):
    room = path.relative_to(ROOT / "scope").parts[0].removesuffix(".py")
    if room == "__init__" or path.name == "__main__.py":  # `python -m scope.pool` is an entry point
        return
    for other in imports(path):
        if other != room and (room, other) not in ALLOWED:
            assert ROOMS.index(other) > ROOMS.index(room), f"{room} imports from {other}, a room above it"


@pytest.mark.parametrize("entry", ["mine.py", "train.py", "evaluate.py"])
def test_entry_points_are_thin(entry):
    assert len((ROOT / entry).read_text().splitlines()) < 60


@pytest.mark.parametrize(
    ("rooms", "heavy"),
    [
        (
            "scope.recipe, scope.items, scope.pool, scope.mining, scope.evaluation, scope.training",
            {"torch", "transformers", "datasets", "wandb"},
        ),
        ("scope.report.__main__, scope.report.folder", {"torch", "transformers", "matplotlib"}),
    ],
)
def test_rooms_load_without_what_is_slow(rooms, heavy):
    code = f"import sys, {rooms}; sys.exit(' '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"imported at the top: {done.stderr}"
