"""Small rows in the schemas of RAG-Stress's sources, and an item of it, written for the tests."""

import gzip
import json
from pathlib import Path

from scope.evidence import Document, EvidenceItem, Layout

FIRST = "The Tide Clock was built by Anna Berg in a harbour town."
SECOND = "It shows the hours of high water on a painted dial."
THIRD = "Sailors came from far away to set their watches by it."


def layouts(answer="Anna Berg", foil="Clara Holm"):
    """Three layouts and the source's own order of three sentences, the answer in the first."""
    orders = {
        "beginning": (FIRST, SECOND, THIRD),
        "middle": (SECOND, FIRST, THIRD),
        "end": (SECOND, THIRD, FIRST),
        "original": (FIRST, SECOND, THIRD),
    }
    found = {}
    for name, order in orders.items():
        clean = " ".join(order)
        found[name] = Layout(clean, clean.replace(answer, foil), clean.index(answer), answer, foil)
    return found


GOOD = EvidenceItem(
    id="trivia_qa-1",
    source="trivia_qa",
    language="en",
    question="Who built the Tide Clock of the harbour town?",
    reference="Anna Berg",
    foil="Clara Holm",
    aliases=("A. Berg",),
    documents=(Document("A lighthouse stands on the northern pier."), Document("Nets are dried on the green.")),
    slot=3,
    layouts=layouts(),
    answer_kind="person",
    license="CC BY-SA 4.0",
    provenance={"row": "x.jsonl:1", "form": "name"},
)

#: (first name, last name, thing, town) of the made-up makers.
MAKERS = (
    ("Anna", "Berg", "Tide Clock", "Norhavn"),
    ("Clara", "Holm", "Sun Gate", "Eastby"),
    ("Emma", "Lund", "Salt Bell", "Westrup"),
    ("Laura", "Krag", "Wind Harp", "Sondal"),
    ("Julia", "Friis", "Rain Mill", "Kirkmark"),
)


def dumped(n, passages=None):
    """A row of passages in the manner of the 2018 Wikipedia dump, about the n-th maker."""
    first, last, thing, town = MAKERS[n]
    target = (
        f'{thing} {thing} is a ""landmark"" of {town} that draws many people. The {thing} was built by {first} {last} '
        f"for the harbour of {town} and still works. Children of {town} learn a song about its sound. Visitors may "
        "climb the stairs on the first Sunday of the month. The fee of the ticket goes to the"
    )
    side = f"{town} {town} is a town on the coast. Fishing was its trade for a long time. Its market is held on"
    more = f"of the old road. The bridge of {town} was closed for years. It was opened again after repairs were"
    return {
        "id": f"test_{n}",
        "question": f"Who built the {thing} of {town}?",
        "answers": [f"{first} {last}", f"{last}, {first}"],
        "passages": passages
        or [
            {"title": town, "text": side},
            {"title": thing, "text": target},
            {"title": "Bridge", "text": more},
        ],
        "answer_in_passages": True,
    }


def nq(n):
    """A row whose answer is a year."""
    thing, year = MAKERS[n][2], 1820 + 11 * n
    text = (
        f"{thing} {thing} is a landmark of the town. The {thing} was first opened to the public in {year} by the mayor "
        "of the day. A fair with music is held beside it every summer. Old prints of it hang in the hall of the guild."
    )
    row = dumped(n, [{"title": thing, "text": text}])
    return row | {
        "id": f"nq_{n}",
        "question": f"when was the {thing} opened to the public".lower(),
        "answers": [str(year)],
    }


def hotpot(n, answer=None):
    """A row of two supporting paragraphs and one that supports nothing."""
    first, last, thing, town = MAKERS[n]
    return {
        "id": f"hp{n}",
        "question": f"Which city is home to the museum about the maker of the {thing}?",
        "answer": answer or town,
        "type": "bridge",
        "level": "hard",
        "supporting_facts": {"title": [thing, f"{last} Museum"], "sent_id": [0, 0]},
        "context": {
            "title": ["Moon", thing, f"{last} Museum"],
            "sentences": [
                ["The moon has no light of its own.", " Tides follow it."],
                [f"The {thing} is the work of {first} {last}.", " Her other works are lost.", " A fire took them."],
                [
                    f"The {last} Museum opened after a long debate.",
                    f" The museum about the maker is in {town} near the quay.",
                    " Entry is free for pupils and for the old.",
                    " A café was added by the city later on.",
                ],
            ],
        },
    }


def medqa(n):
    """A row of four options."""
    options = {"A": f"Drug {n}A", "B": f"Rest {n}B", "C": f"Surgery {n}C", "D": f"Water {n}D"}
    return {
        "question": f"Patient {n} has a cough. What helps?",
        "answer": options["B"],
        "options": options,
        "answer_idx": "B",
    }


def write_rows(path: Path, rows: list[dict]) -> None:
    """Rows as gzip-compressed JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0))


def write_sources(folder: Path) -> Path:
    """A data folder with a few rows of every source."""
    five = range(len(MAKERS))
    write_rows(folder / "trivia_qa_passages" / "test.jsonl.gz", [dumped(n) for n in five])
    write_rows(folder / "nq_passages" / "test.jsonl.gz", [nq(n) for n in five])
    write_rows(
        folder / "hotpot_qa" / "validation.jsonl.gz", [*(hotpot(n) for n in five), hotpot(0, "yes") | {"id": "y"}]
    )
    write_rows(folder / "jeopardy_all" / "train.jsonl.gz", [{"category": "X", "question": "A clue", "answer": "Ink"}])
    write_rows(folder / "medqa_usmle" / "test.jsonl.gz", [medqa(n) for n in five])
    return folder


CHINESE = [
    {
        "question": f"{town}的{thing}是谁建造的？",
        "answer": maker,
        "documents": [
            f"{town}是一座海边小城。渔业曾是这里的主要行业。",
            f"{thing}是当地的名胜。{town}的{thing}由{maker}建造，至今仍在使用。许多游客每年夏天前来参观。孩子们会唱一首关于它的歌。",
        ],
    }
    for town, thing, maker in (("北港", "潮钟", "林安娜"), ("东镇", "日门", "王克拉"), ("西村", "盐铃", "陈艾玛"))
]
