"""The model card of a trained adapter or merged model: where it comes from, how it did, what it cannot show."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts, merge, mining
from scope.evaluation.stage import folder_of
from scope.evaluation.suites import SUITES
from scope.mining.funnel import render
from scope.models import SOURCES, ResolvedModel, adapter_identity, weights_hash
from scope.recipe import Recipe
from scope.report.markup import markdown
from scope.report.terminal import difference, hundredfold, interval, intervals, is_few, rate, readings, shown

ADAPTER = "adapter/adapter_model.safetensors"
BASE = "base"
#: The suite whose results a card shows.
SUITE = SUITES["mist"]
#: What the questions of a pool are, by their provenance.
PROVENANCES = {
    "authored": "from generated families",
    "human_authored": "written by people",
    "existing_benchmark": "of existing sets",
}
#: Recipe keys that may name a server of one's own.
ADDRESSES = ("server", "base_url", "endpoint")


@dataclass(frozen=True, slots=True)
class Product:
    """What a card describes. results and system: where its evaluation stands, None where it has none."""

    kind: str  # adapter or merged
    folder: Path
    manifest: dict[str, Any]  # of the stage that wrote the folder
    trained: dict[str, Any]  # manifest of the training stage
    results: dict[str, Any] | None
    system: str | None
    items: Sequence[Mapping[str, Any]] = ()  # of items.jsonl of that evaluation


def find_product(recipe: Recipe, kind: str) -> Product:
    """The recipe's finished adapter or merged model; StageError with the command that makes it."""
    command = recipe.command("train.py")
    trained = artifacts.require(recipe.folder(merge.TRAIN), merge.TRAIN, command)
    folder, manifest = recipe.folder(merge.TRAIN) / "adapter", trained
    if kind == "merged":
        folder = recipe.folder(merge.FOLDER)
        manifest = artifacts.require(folder, merge.FOLDER, command, {"adapter": trained["outputs"][ADAPTER]})
    results, system = _evaluation(recipe, kind, trained)
    asked = folder_of(recipe, SUITE.name) / "items.jsonl"
    items = [json.loads(line) for line in asked.read_text("utf-8").splitlines()] if results is not None else []
    return Product(kind, folder, manifest, trained, results, system, items)


def _evaluation(recipe: Recipe, kind: str, trained: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """Results of exactly these weights, and the system they stand under.

    At coefficient 1 the adapter and the merged model compute the same, so that either may stand for both.
    """
    folder = folder_of(recipe, SUITE.name)
    manifest = artifacts.read_manifest(folder)
    if manifest is None or not artifacts.is_finished(folder, manifest["key"]):
        return None, None
    systems = manifest["key"]["systems"]
    made_on = trained["key"].get("identity")
    adapter = [
        trained["key"]["weights"],
        artifacts.fingerprint(adapter_identity(recipe.folder(merge.TRAIN) / "adapter")),
    ]
    merged = artifacts.read_manifest(recipe.folder(merge.FOLDER))
    fits = {"adapter": systems.get("adapter") == [*adapter, made_on], "merged": False}
    if merged is not None and merged["key"]["adapter"] == trained["outputs"][ADAPTER] and "merged" in systems:
        place = recipe.folder(merge.FOLDER)
        model = ResolvedModel(str(place), place, None, "local", weights_hash(place))
        fits["merged"] = systems["merged"][0::2] == [model.weights_sha256, model.identity]
    same = merged is not None and merged["key"]["merge"]["coefficient"] == 1
    order = [kind] + ([other for other in fits if other != kind] if same else [])
    system = next((name for name in order if fits[name]), None)
    return (_read(folder / "results.json"), system) if system else (None, None)


def card(recipe: Recipe, product: Product, license_id: str | None = None) -> str:
    """The card as Markdown with front matter, for the hub and for the folder itself. No path of this machine is in it.

    license_id: the base's, where the caller knows it; else that of the base's own card or of the table of
    mirrors, else `other`.
    """
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    made = product.trained["recipe"]
    base, results = made["model"]["base"], product.results
    title = f"{recipe.name} / {recipe.arm_name}"
    merged = product.kind == "merged"
    measured = []
    if results is not None and product.system is not None:
        rates = results["systems"][product.system]["rates"]
        measured = [
            EvalResult(
                task_type="text-generation",
                dataset_type=hub_id(made["pool"]["evaluation"]) or "own-pool",
                dataset_name=f"{results['items']} items of {_pool(made, 'evaluation')}: {questions(product.items)}",
                metric_type="accuracy" if metric in (*SUITE.cells, "overall") else metric,
                metric_name=f"{SUITE.headings[metric]} (per cent)",
                metric_value=round(100 * rates[metric]["estimate"], 2),
            )
            for metric in SUITE.headings
            if rates[metric]["estimate"] is not None
        ]
    data = ModelCardData(
        base_model=hub_id(base),
        base_model_relation="finetune" if merged else "adapter",
        library_name="transformers" if merged else "peft",
        license=license_id or base_license(base) or "other",
        pipeline_tag="text-generation",
        datasets=[name for name in (made["pool"]["train"], made["mining"].get("quartets")) if hub_id(name)] or None,
        tags=["scope", "context-faithfulness", "preference-optimization", made["trainer"]["kind"], "lora"],
        model_name=title if measured else None,
        eval_results=measured or None,
    )
    body = "\n\n".join(
        [
            f"# {title}",
            _what(product, base),
            "## Results",
            _results(product),
            "## Limits",
            "\n".join(f"- {limit}" for limit in _limits(product, _warned(recipe))),
            "## How to load it",
            _snippet(recipe, product),
            "## How it was made",
            _how(recipe, product),
        ]
    )
    return str(ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body}\n"))


def hub_id(name: str | None) -> str | None:
    """`name` if it reads as owner/name on the hub and is no file or folder here."""
    is_id = name is not None and re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None
    return name if is_id and not Path(str(name)).exists() and not str(name).startswith(".") else None


def base_license(base: str) -> str | None:
    """License identifier of the base by its own card, or by the table of mirrors; None where neither says."""
    from huggingface_hub import ModelCard

    own = Path(base) / "README.md"
    if own.is_file():
        return ModelCard.load(own, ignore_metadata_errors=True).data.get("license")
    known = _read(SOURCES)["models"].get(base)
    return known and known["license"].lower()


def public(value: Any) -> Any:
    """Plain data as it may leave this machine: absolute paths reduced to their last part, no servers of one's own."""
    if isinstance(value, Mapping):
        return {public(name): "" if name in ADDRESSES else public(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [public(entry) for entry in value]
    if not isinstance(value, str):
        return value
    if re.match(r"(~?/)[^/\n]+/[^\n]*$", value):
        return Path(value).name
    return re.sub(r"(^|[\s='\"(\[,:])~?/(?:[^\s'\")\],/]+/)+([^\s'\")\],/]*)", r"\1\2", value)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


def _pool(made: dict[str, Any], which: str) -> str:
    source = str(public(made["pool"][which]))
    return f"the {source} pool" if "." not in source else source


def questions(items: Sequence[Mapping[str, Any]]) -> str:
    """What a pool's questions are, by provenance and source, with counts: never a benchmark's name for one's own."""
    by: dict[str, Counter[str]] = {}
    for item in items:
        by.setdefault(item["provenance"], Counter())[item["source"]] += 1
    parts = []
    for provenance, sources in by.items():
        named = ", ".join(str(public(source)) for source, _ in sources.most_common(5))
        more = ", ..." * (len(sources) > 5)
        parts.append(f"{sources.total()} {PROVENANCES.get(provenance, provenance)} ({named}{more})")
    return " and ".join(parts)


def _what(product: Product, base: str) -> str:
    trained, made = product.trained, product.trained["recipe"]
    named = hub_id(base)
    shown = f"[{base}](https://huggingface.co/{base})" if named else f"`{public(base)}` (a local model)"
    record = _read(product.folder / "base.json")
    lines = [
        f"A {'merged model' if product.kind == 'merged' else 'LoRA adapter'} on {shown}, trained with "
        f"{made['trainer']['kind'].upper()} on matched contexts (SCOPE): the model is to ignore context "
        "that misleads it and to go on using context that helps.",
        "",
        f"- base: `{public(base)}`, revision {record['revision'] or 'none (not from the hub)'}, weights SHA-256 "
        f"`{record['weights_sha256']}`",
        f"- adapter weights SHA-256: `{trained['outputs'][ADAPTER]}`",
    ]
    if product.kind == "merged":
        lines.append(
            f"- merged at coefficient {product.manifest['key']['merge']['coefficient']:g} in "
            f"{product.manifest['dtype']}; its logits differ from the adapter's by at most "
            f"{product.manifest['logit_difference']:.2g} on checked prompts, whose logits have a standard deviation of "
            f"{product.manifest['logit_spread']:.2g}"
        )
    return "\n".join(lines)


def _results(product: Product) -> str:
    results, system = product.results, product.system
    if results is None or system is None:
        return "Not evaluated yet: nothing is known of how it answers, neither where it gains nor where it loses."
    against = results["differences"].get(system)
    head = ["per cent", *results["systems"], *([f"{system} − {BASE}", "interval", "McNemar p"] if against else [])]
    rows = []
    for reading in ("rates", "flexible"):
        for metric, heading in SUITE.headings.items():
            if not all(metric in s.get(reading, {}) for s in results["systems"].values()):
                continue
            row = [heading + ", flexible" * (reading == "flexible")]
            row += [_rated(s, reading, metric) for s in results["systems"].values()]
            if against:
                test = against["mcnemar"].get(metric) if reading == "rates" else None
                paired = against[reading][metric]
                row += [difference(paired), interval(paired), "" if test is None else f"{test['p_value']:.2g}"]
            rows.append(row)
    said = " ".join(f"{line}." for line in [*intervals(shown(results)), *readings(results)])
    return (
        markdown(head, rows) + f"\n\n{results['items']} items of {_pool(product.trained['recipe'], 'evaluation')}: "
        f"{questions(product.items)}; one seed. ± is the bootstrap's standard deviation, [low, high] the "
        f"{100 * results['level']:g} % interval; of the paired difference over {results['replicates']} item resamples "
        "where nothing else is said. In brackets: the count of n, and of an accuracy the answers that are unparsed and "
        "those that the token cap cut, in per cent. Flexible: by the last value in the answer, whatever its form. "
        "SC2W: wrong when misled among right when clean; less is better. "
        + said
        + " " * bool(said)
        + (f"`{system}` is this model." if system == product.kind else f"`{system}` computes the same as this model.")
    )


def _rated(system: dict[str, Any], reading: str, metric: str) -> str:
    """A rate with its counts and, of an accuracy as it is read first, the unparsed and the cut share."""
    found = system[reading][metric]
    beside = [f"{found['count']}/{found['n']}"] if "count" in found else []
    if metric in SUITE.cells and reading == "rates":
        cell = system["cells"][metric]
        named = (("unparsed", "unparsed_share"), ("cut", "truncated_share"))
        beside += [f"{word} {hundredfold(cell[share])}" for word, share in named if share in cell]
    return f"{rate(found)} ({'; '.join(beside)})" if beside else rate(found)


def _limits(product: Product, warned: str | None) -> list[str]:
    """warned: what mining said of a base that solves too little of its pool."""
    results, system, made = product.results, product.system, product.trained["recipe"]
    limits = [f"Trained on {_pool(made, 'train')} with one seed; other domains and contexts were not trained on."]
    if warned:
        limits.append(f"Mining's warning: {warned}.")
    if results is None or system is None:
        return [*limits, "Not evaluated yet."]
    limits.append(
        f"Measured on {results['items']} items of {_pool(made, 'evaluation')} only; nothing here speaks of other tasks."
    )
    limits += compared(results, system)
    cells = results["systems"][system]["cells"]
    cut = {SUITE.headings[cell]: found["truncated_share"] for cell, found in cells.items() if found["truncated_share"]}
    if cut:
        shares = ", ".join(f"{cell} {100 * share:.1f} %" for cell, share in cut.items())
        limits.append(f"Answers cut by the token cap count as they stand: {shares}.")
    return limits


def compared(results: dict[str, Any], system: str) -> list[str]:
    """What the paired intervals support of a loss against the base: that there is one, or how large one may be."""
    if system not in results["differences"]:
        return []
    found, open_ends, unclaimed = [], [], []
    for metric, paired in results["differences"][system]["rates"].items():
        heading = SUITE.headings[metric]
        if is_few(paired):
            unclaimed.append(heading)
        elif paired["interval"] is not None and (worst := _worst(metric, paired)) is not None:
            open_ends.append(f"{heading} {worst}")
    if fell := fallen(results, system):
        found.append(f"Worse than the base, with the whole interval on the wrong side: {', '.join(fell)}.")
    if open_ends:
        found.append(f"A loss against the base is not ruled out; the intervals reach as far as {', '.join(open_ends)}.")
    if unclaimed:
        found.append(f"Of too few items for any claim against the base: {', '.join(unclaimed)}.")
    return found


def _worst(metric: str, paired: Mapping[str, Any]) -> str | None:
    """The worse end of an interval that holds a loss and its opposite; None of any other."""
    low, high = paired["interval"]
    end = high if metric in SUITE.lower_is_better else low
    return hundredfold(end, "+.1f") if low <= 0 <= high and hundredfold(end) != "0.0" else None


def fallen(results: dict[str, Any], system: str) -> list[str]:
    """Metrics whose paired difference to the base is worse with its whole interval, in words; none of few items."""
    if system not in results["differences"]:
        return []
    found = []
    for metric, paired in results["differences"][system]["rates"].items():
        if paired["interval"] is None or is_few(paired):
            continue
        low, high = paired["interval"]
        worse = low > 0 if metric in SUITE.lower_is_better else high < 0
        if worse:
            found.append(f"{SUITE.headings[metric]} {difference(paired)} {interval(paired)}")
    return found


def _warned(recipe: Recipe) -> str | None:
    """The warning that mining gave of this base and pool, if it gave one."""
    funnel = recipe.folder(mining.FOLDER) / "funnel.json"
    counts = _read(funnel) if funnel.is_file() and not recipe.mining.quartets else {}
    return str(public(said)) if (said := mining.incompetent(recipe, counts)) else None


def _snippet(recipe: Recipe, product: Product) -> str:
    name = recipe.push_to or "FOLDER_OR_HUB_ID"
    library, loader = {
        "adapter": ("peft", "AutoPeftModelForCausalLM"),
        "merged": ("transformers", "AutoModelForCausalLM"),
    }[product.kind]
    return (
        f"```python\nfrom {library} import {loader}\nfrom transformers import AutoTokenizer\n\n"
        f'model = {loader}.from_pretrained("{name}")\ntokenizer = AutoTokenizer.from_pretrained("{name}")\n```'
    )


def _how(recipe: Recipe, product: Product) -> str:
    import yaml

    trained = product.trained
    facts, made = trained["facts"], trained["recipe"]
    command = public(trained.get("command") or recipe.command("train.py"))
    parts = [f"```bash\n{command}\n```"]
    funnel = recipe.folder(mining.FOLDER) / "funnel.json"
    if funnel.is_file() and not made["mining"].get("quartets"):
        parts.append(f"Mining:\n\n```\n{render(_read(funnel))}\n```")
    masses = markdown(
        ["rows, per cent", *facts["masses"]],
        [
            ["asked for", *(f"{100 * mass:.2f}" for mass in facts["masses"].values())],
            ["realised", *(f"{100 * mass:.2f}" for mass in facts["realised_masses"].values())],
        ],
    )
    parts.append(f"{facts['quartets']} quartets, {facts['passes']:.1f} passes over them:\n\n{masses}")
    versions = ", ".join(f"{name} {version}" for name, version in trained["versions"].items())
    parts.append(f"Revision of the code: {trained['git_revision'] or 'unknown'}. Versions: {versions}.")
    settings = yaml.safe_dump(public(made), sort_keys=False, allow_unicode=True)
    parts.append(f"<details><summary>The resolved recipe</summary>\n\n```yaml\n{settings}```\n\n</details>")
    return "\n\n".join(parts)
