"""Figures: no label over another or outside, nothing that is not defined, and the same bytes twice."""

import itertools
import json
import warnings
from pathlib import Path

import matplotlib
import pytest
from test_report import HOSTILE, every_suite, mist, transfer

from scope.report import figures
from scope.report.figures import more, rates, style

NAMES = ["base", "prompt_defense", "scope", "misleading_only", "later/no_irrelevant (adapter)"]
NAMES += ["unmatched", "sft", "opsd"]
FUNNEL = {
    "items": 5000,
    "asked": 4990,
    "clean_accuracy": 0.9,
    "quartets": 1393,
    "chosen_from": {"clean": 1311, "diagnostic": 82},
    "dropped": {"shared_with_evaluation": 10, "not_misled": 3000, "diagnostic_leaked": 597},
    "by": {},
}
MIST = {"drop", "conditions", "tradeoff", "slices_mist"}


def texts_of(figure):
    """Every text that is drawn, with its box."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        ticks = [tick for axis in (axes.xaxis, axes.yaxis) for tick in axis._update_ticks()]  # those within the limits
        found += [label for tick in ticks for label in (tick.label1, tick.label2)]
        found += [*axes.texts, axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]
    for legend in figure.legends:
        found += legend.get_texts()
    shown = [text for text in found if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


def check_labels(drawing):
    """No text overlaps another by more than a pixel (of 100 an inch) or leaves the figure."""
    boxes = texts_of(drawing.figure)
    width, height = drawing.figure.bbox.size
    for text, box in boxes:
        inside = box.x0 > -1 and box.y0 > -1 and box.x1 < width + 1 and box.y1 < height + 1
        assert inside, f"{text!r} leaves {drawing.name}"
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or down <= 1, f"{drawing.name}: {one!r} and {other!r} overlap"


def drawn(results, runs=(), published=False):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {drawing.name: drawing for drawing in figures.draw(results, runs, published)}


CASES = {
    "one": (NAMES[:1], False),
    "two_published": (NAMES[:2], True),
    "six": (NAMES[:6], False),
    "eight": (NAMES, False),
    "eight_published": (NAMES, True),
    "hostile_published": (["base", *HOSTILE, "q" * 150], True),
}


@pytest.mark.parametrize(("names", "published"), CASES.values(), ids=CASES)
def test_no_label_lies_over_another_or_outside(names, published):
    made = drawn(every_suite(names), published=published)
    assert set(made) == MIST | {"transfer", "repairs"} - ({"repairs"} if len(names) == 1 else set())
    with style.styled():
        for drawing in made.values():
            assert drawing.figure.get_figwidth() <= 3.35
            check_labels(drawing)


def test_the_same_numbers_give_the_same_bytes_whatever_the_users_settings_are(tmp_path):
    found = {"mist": mist(NAMES[:3])}
    for place, size in (("one", 5), ("two", 30)):
        (tmp_path / place).mkdir()
        with matplotlib.rc_context({"font.size": size, "svg.hashsalt": None, "savefig.facecolor": "red"}):
            made = drawn(found)
            with style.styled():
                for drawing in made.values():
                    style.save(drawing, tmp_path / place)
    for one in (tmp_path / "one").iterdir():
        assert one.read_bytes() == (tmp_path / "two" / one.name).read_bytes(), one.name
    svg = (tmp_path / "one" / "drop.svg").read_text("utf-8")
    assert "<dc:date>" not in svg and "<text" not in svg


def test_what_is_undefined_or_withheld_is_left_out():
    found = mist(["base", "scope", "sft"], failed=[("scope", "misleading")])
    made = drawn({"mist": found})
    for name in ("drop", "tradeoff", "repairs"):
        texts = [text for text, _ in texts_of(made[name].figure)]
        assert "scope" not in texts and "sft" in texts, name
    assert "scope" in [text for text, _ in texts_of(made["conditions"].figure)], "its other conditions stand"
    hatched = [patch for patch in made["slices_mist"].figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == sum(len(values) for values in found["slices"].values())
    nothing = mist(["base"], failed=[("base", cell) for cell in ("clean", "misleading", "correct", "irrelevant")])
    assert drawn({"mist": nothing}) == {}


def test_the_mean_drop_and_the_published_one_are_shown():
    made = drawn({"mist": mist(["base", "scope"])}, published=True)
    texts = [text for text, _ in texts_of(made["drop"].figure)]
    assert {"mean of 2", "mean of 23", "−17.1"} <= set(texts)
    assert "mean of 1" not in [text for text, _ in texts_of(drawn({"mist": mist(["base"])})["drop"].figure)]


def test_bars_dots_and_places_are_the_numbers():
    found = mist(["base", "scope"])
    (axes,) = drawn({"mist": found})["repairs"].figure.axes
    counts = found["differences"]["scope"]["repairs"]
    assert [bar.get_width() for bar in axes.patches] == [counts["repairs"], counts["gains"], -counts["costs"]]
    moved = {"gsm_ic": transfer("gsm_ic", ["base", "scope"])}
    (axes,) = drawn(moved)["transfer"].figure.axes
    wanted = [100 * system["rates"]["accuracy"]["estimate"] for system in moved["gsm_ic"]["systems"].values()]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(wanted)
    with style.styled():
        (axes,) = rates.tradeoff(found, False).figure.axes
    dots = [line for line in axes.lines if line.get_marker() in ("o", "s") and len(line.get_xdata()) == 1]
    for dot, system in zip(dots, found["systems"].values(), strict=True):
        controls = [100 * system["rates"][cell]["estimate"] for cell in ("clean", "correct", "irrelevant")]
        assert (dot.get_xdata()[0], dot.get_ydata()[0]) == pytest.approx(
            (100 * system["rates"]["sc2w"]["estimate"], sum(controls) / 3)
        )


def test_dynamics_go_from_the_base_over_the_checkpoints_to_the_end():
    names = ["base", "scope (checkpoint-300)", "scope (checkpoint-60)", "scope (merged)", "sft"]
    found = mist(names, steps=dict(zip(names, (0, 300, 60, 300, 300), strict=True)))
    found["folders"] = {name: "runs/demo/" + name.split()[0] for name in names}
    made = drawn({"mist": found})
    above, below = made["dynamics"].figure.axes
    assert list(above.lines[0].get_xdata()) == [0, 60, 300] and len(below.get_legend_handles_labels()[0]) == 3
    sc2w = [100 * found["systems"][name]["rates"]["sc2w"]["estimate"] for name in ("base", names[2], "scope (merged)")]
    assert list(above.lines[0].get_ydata()) == pytest.approx(sc2w)
    assert made["dynamics"].title.endswith("from the base to scope (merged)")
    check_labels(made["dynamics"])


def test_the_funnel_falls_from_the_pool_to_the_quartets(tmp_path):
    for run in ("a", "b"):
        (tmp_path / run / "mine").mkdir(parents=True)
        (tmp_path / run / "mine" / "funnel.json").write_text(json.dumps(FUNNEL))
    (tmp_path / "a" / "scope").mkdir()
    assert figures.funnels([tmp_path / "a", tmp_path / "a" / "scope"]) == [tmp_path / "a" / "mine" / "funnel.json"]
    assert set(drawn({}, [tmp_path / "a", tmp_path / "b"])) == {"funnel_1", "funnel_2"}
    (made,) = drawn({}, [tmp_path / "a"]).values()
    assert made.title == "Mining of a: 1393 quartets of 5000 items"
    bars = made.figure.axes[0].patches
    assert [bar.get_width() for bar in bars] == [5000, 10, 3000, 597, 1311, 82]
    assert bars[3].get_x() == 1393 and bars[5].get_x() == 1311
    with style.styled():
        check_labels(more.funnel("funnel", FUNNEL, "a"))


def test_labels_are_wrapped_apart_and_printable():
    long = "runs/very_long_name_of_a_run/misleading_only (checkpoint-300)"
    shown = style.labels([long, long + " ", "x" * 99, "模\x00\n", "scope (checkpoint-60)"], 18)
    assert len(set(shown)) == 5 and all(len(line) <= 18 for text in shown for line in text.split("\n"))
    assert all(text.count("\n") < 3 for text in shown)
    assert shown[3].startswith("�") and shown[4] == "scope\n(checkpoint-60)"


def test_two_systems_never_look_alike():
    looks = {(rates._look(n)["color"], rates._look(n)["marker"]) for n in range(72)}
    assert len(looks) == 72 and Path(style.__file__).name == "style.py"
