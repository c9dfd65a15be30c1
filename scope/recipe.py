"""The typed recipe: composition by Hydra, overrides, and refusals in plain sentences. Its sections: `scope.schema`.

`recipe=NAME` selects `recipes/NAME.yaml`; every other `key=value` is a Hydra override. Nothing
here imports torch, so `--help` and a refusal answer at once.
"""

import dataclasses
import difflib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scope.artifacts import Refusal
from scope.schema import (
    ARMS,
    SUITE_NAMES,
    SYSTEMS,
    DevConfig,
    EngineConfig,
    EvaluationConfig,
    JudgeConfig,
    MergeConfig,
    MiningConfig,
    ModelConfig,
    PairsConfig,
    PoolConfig,
    ReleaseConfig,
    TrainerConfig,
    choice,
    number,
    text,
)

RECIPES = Path(__file__).resolve().parent.parent / "recipes"

#: Keys that may be empty.
OPTIONAL: tuple[str, ...] = (
    "arm",
    "push_to",
    "data_dir",
    "pool.published",
    "pool.questions",
    "pool.own_errors",
    "mining.quartets",
    "evaluation.ragstress.validated",
)
OPTIONAL += ("engine.model", "engine.server", "engine.azure.endpoint", "engine.azure.api_version")
OPTIONAL += ("engine.azure.deployment", "release.decisions", "evaluation.ragstress.validated")
OPTIONAL += tuple(f"judge.{key}" for key in OPTIONAL if key.startswith("engine."))


#: What `evaluate.py` is usually told, without the section's name before it.
SHORT = {name: f"evaluation.{name}" for name in ("systems", "suites", "limit", "slice", "rescore")}


class RecipeError(Refusal, ValueError):
    """A recipe that cannot run."""


@dataclass
class Recipe:
    name: str = text("???", help="names the run's folder")
    seed: int = number(0, 0, help="of pool, training and bootstrap, each of which may have its own")
    output_dir: str = text("runs/${name}", help="where every stage writes")
    arm: str = text("", help="names the trained arm's folder, before `_seedN`; empty: follows pairs and trainer")
    data_dir: str = text("", help="folder of public data sets in their hub schemas; empty: from the hub")
    push_to: str = text("", help="org/name on the hub to publish to once trained; empty: nothing is published")
    push: str = choice("merged", "adapter", help="what is published")
    dry_run: bool = text(False, help="check everything that needs no model, print it, and stop")
    model: ModelConfig = field(default_factory=ModelConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    release: ReleaseConfig = field(default_factory=ReleaseConfig)
    mining: MiningConfig = field(default_factory=MiningConfig)
    pairs: PairsConfig = field(default_factory=PairsConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    merge: MergeConfig = field(default_factory=MergeConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    dev: DevConfig = field(default_factory=DevConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    judge: JudgeConfig = field(default_factory=JudgeConfig)

    @property
    def root(self) -> Path:
        return Path(self.output_dir)

    @property
    def pool_seed(self) -> int:
        return self.seed if self.pool.seed is None else self.pool.seed

    @property
    def training_seed(self) -> int:
        return self.seed if self.trainer.seed is None else self.trainer.seed

    @property
    def evaluation_seed(self) -> int:
        return self.seed if self.evaluation.seed is None else self.evaluation.seed

    @property
    def arm_name(self) -> str:
        """Folder and table name of the trained arm: ARMS for DPO, `sft` or `sft_<pairs>`, `opsd` with any pairs.

        A training seed other than the pool's stands behind it, also behind a name that was given: `scope_seed1`.
        """
        kind, pairs = self.trainer.kind, self.pairs.arm
        alone = kind == "opsd" or pairs == "full"
        name = self.arm or (ARMS[pairs] if kind == "dpo" else kind if alone else f"{kind}_{pairs}")
        seed = f"_seed{self.training_seed}"
        return name if self.training_seed == self.pool_seed or name.endswith(seed) else name + seed

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
    for given, key in ((recipe.name, "name"), (recipe.arm, "arm")):
        if not re.fullmatch(r"[\w.+=-]*", given) or given in (".", ".."):
            faults.append(f"{key}={given!r} names a folder; use letters, digits, '.', '_', '+', '=' and '-'")
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
    if beyond := [s for s in recipe.dev.steps if not 0 <= s <= trainer.max_steps]:
        faults.append(f"dev.steps={beyond} lie outside 0 to trainer.max_steps={trainer.max_steps}")
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
            faults.append(f"evaluation.suites={suite} is not a suite; {nearest(suite, SUITE_NAMES)}")
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
    given = following_base(name, checked)
    with as_refusals(), initialize_config_dir(str(RECIPES), version_base=None):
        return typed(compose(name, given), given)


def typed(config: Any, overrides: Sequence[str] = ()) -> Recipe:
    """What Hydra composed, checked. overrides: as given, for what is the user's own is never dropped."""
    from omegaconf import OmegaConf

    missing = OmegaConf.missing_keys(config)
    if missing:
        raise RecipeError("; ".join(f"{key} is not set; add {key}=VALUE" for key in sorted(missing)))
    with as_refusals():
        recipe = OmegaConf.to_object(config)
    assert isinstance(recipe, Recipe)
    engine, own = recipe.engine, [o for o in overrides if o.lstrip("+").startswith("model.chat_template_kwargs")]
    faults = []
    if engine.kind == "openai" and (engine.azure.endpoint or engine.base_url == EngineConfig().base_url):
        # Of a template that such an API does not use, and refuses.
        faults += [f"{each.lstrip('+')}: a hosted API renders its own template; leave it out" for each in own]
        recipe.model.chat_template_kwargs = {}
    if recipe.pool.published:
        _take_published(recipe.pool)
    faults += value_faults(recipe)
    if faults:
        raise RecipeError("\n".join(faults))
    return recipe


#: Files that `scope.tables`, a room above this one, reads.
_TABLE = re.compile(r"\.(jsonl|json|csv|tsv|parquet)(\.gz)?$", re.IGNORECASE)
#: What the two files of a folder of finished pools may be called.
_PUBLISHED_FILES = {"train": ("train",), "evaluation": ("test", "evaluation", "eval", "bench")}


def _take_published(pool: PoolConfig) -> None:
    """Name both pools of `pool.published`; RecipeError where a folder lacks one of them or has it twice."""
    folder = Path(pool.published)
    if not folder.is_dir():
        if _TABLE.search(folder.name) or not (
            re.fullmatch(r"[\w.-]+/[\w.-]+", pool.published) or _beside(pool.published)
        ):
            raise RecipeError(
                f"pool.published={pool.published} is neither a folder nor the beginning of two data sets' names; write "
                "org/MIST for org/MIST-Train and org/MIST-Bench, or name files with pool.train and pool.evaluation"
            )
        pool.train, pool.evaluation = f"{pool.published}-Train", f"{pool.published}-Bench"
        return
    for which, stems in _PUBLISHED_FILES.items():
        found = sorted(
            path for path in folder.iterdir() if _TABLE.search(path.name) and path.name.partition(".")[0] in stems
        )
        if len(found) != 1:
            named = " and ".join(path.name for path in found) or "none"
            raise RecipeError(
                f"pool.published={folder} holds {named} of {', '.join(f'{stem}.*' for stem in stems)}; it needs one "
                f"file for pool.{which}"
            )
        setattr(pool, which, str(found[0]))


def _beside(prefix: str) -> bool:
    return all(Path(f"{prefix}-{name}").is_dir() for name in ("Train", "Bench"))


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


#: How a base of a family that a file of recipes/model describes one of is called.
_FAMILIES = {r"qwen3-": "qwen3_4b", r"(meta-)?llama-3\.": "llama32_3b"}


def following_base(name: str, overrides: list[str]) -> list[str]:
    """The overrides with what belongs to them brought along; what is overridden itself stays so.

    A base that a file of recipes/model describes brings all of it, one of the same family its settings, of any other
    nothing is known but its name; a paper's recipe (`scope_BASE`) is named by it. A recipe for other machines than the
    paper's keeps its dtype. Finished pools are taken whole. A server is asked for the base alone.
    """
    given = {key: value for key, _, value in (override.partition("=") for override in overrides)}
    base, group = given.get("model.base"), given.get("model")
    paper = name.startswith("scope_")
    more: dict[str, str] = {}
    if group is None and base is not None and not {",", "?"} & set(base):
        group = more["model"] = _described(base)
        if group != "other" and not paper:
            more["model.dtype"] = "auto"
    if paper and group is not None and "," not in group:
        is_own = base is not None and base != _base_of(group)
        own = re.sub(r"[^\w.-]+", "_", base.rstrip("/").rpartition("/")[2]) if is_own else group  # type: ignore[union-attr]
        if own:
            more["name"] = f"scope_{own}"
    if given.get("pool.published"):
        if twice := [key for key in ("pool.train", "pool.evaluation") if key in given]:
            raise RecipeError(f"pool.published names both pools; leave {' and '.join(twice)} out, or name both there")
        more |= {"pool.n_train": "0", "pool.n_evaluation": "0"}
    engine, dotted = given.get("engine"), given.get("engine.kind") == "openai"
    if engine in ("openai", "azure", "vllm_serve") or dotted:
        more["evaluation.systems"] = "[base]"  # nothing trained here can be asked through it
    if engine in ("openai", "azure") or (dotted and not {"engine", "engine.base_url"} & set(given)):
        more["evaluation.max_new_tokens"] = "8192"  # the paper's, of hosted APIs
    overrides = [*(f"{key}={value}" for key, value in more.items() if key not in given), *overrides]
    if "pool" in given and (path := RECIPES / f"{name}.yaml").exists() and "- pool: " not in path.read_text("utf-8"):
        # Not among its groups, and taken all the same.
        overrides = [f"+{override}" if override.startswith("pool=") else override for override in overrides]
    return overrides


def _base_of(group: str) -> str:
    """The base that a file of recipes/model describes; empty if it leaves it open or there is no such file."""
    path = RECIPES / "model" / f"{group}.yaml"
    found = re.search(r"^base: (\S+)$", path.read_text("utf-8"), re.MULTILINE) if path.exists() else None
    return found[1] if found and found[1] != "???" else ""


def _described(base: str) -> str:
    """The file of recipes/model for a base: its own, its family's, or `other`."""
    groups = {_base_of(path.stem): path.stem for path in (RECIPES / "model").glob("*.yaml")}
    last = base.rstrip("/").rpartition("/")[2]
    family = next((group for form, group in _FAMILIES.items() if re.match(form, last, re.IGNORECASE)), "other")
    return groups.get(base, family)


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
