"""Decoding is what the request says, on every engine: no field comes from a model's generation_config.json."""

import json
import shutil

import pytest
from server import local_engine, small_model

from scope.engines import Sampling
from scope.engines.decoding import GENERATION, NEUTRAL, PROTOCOL, generation_config, open_fields, server_fields
from scope.engines.vllm import sampling_fields
from scope.recipe import load

#: Every field that steers transformers' decoding, set to something that shows.
ODD = {
    "repetition_penalty": 1.7,
    "encoder_repetition_penalty": 1.5,
    "no_repeat_ngram_size": 2,
    "encoder_no_repeat_ngram_size": 2,
    "bad_words_ids": [[28], [30]],
    "suppress_tokens": [31, 32, 33, 34],
    "begin_suppress_tokens": [504, 198],
    "forced_bos_token_id": 7,
    "forced_eos_token_id": 9,
    "sequence_bias": [[[28], -10.0]],
    "min_length": 600,
    "min_new_tokens": 20,
    "max_length": 3,
    "exponential_decay_length_penalty": [2, 1.5],
    "temperature": 3.0,
    "top_k": 3,
    "top_p": 0.2,
    "min_p": 0.5,
    "top_h": 0.4,
    "typical_p": 0.3,
    "epsilon_cutoff": 0.1,
    "eta_cutoff": 0.1,
    "do_sample": True,
    "num_beams": 3,
    "num_return_sequences": 2,
    "num_beam_groups": 3,
    "diversity_penalty": 0.5,
    "penalty_alpha": 0.6,
    "guidance_scale": 3.0,
    "length_penalty": -2.0,
    "early_stopping": "never",
    "renormalize_logits": True,
    "remove_invalid_values": True,
    "watermarking_config": {"bias": 5.0, "greenlist_ratio": 0.25},
    "cache_implementation": "static",
    "cache_config": {"a": 1},
    "max_cache_len": 7,
    "stop_strings": ["answer"],
    "max_time": 1e-9,
    "token_healing": True,
    "use_cache": False,
    "use_mtp": True,
    "prompt_lookup_num_tokens": 3,
    "max_matching_ngram_size": 3,
    "assistant_early_exit": 1,
    "dola_layers": "high",
    "low_memory": True,
    "prefill_chunk_size": 2,
    "output_scores": True,
    "a_field_of_a_later_version": 5,
}


@pytest.fixture(scope="module")
def plain(smollm2, tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("plain") / "model", smollm2)


@pytest.fixture(scope="module")
def odd(plain, tmp_path_factory):
    """The same model, its generation_config.json (but for the end token) as odd as can be."""
    folder = tmp_path_factory.mktemp("odd") / "model"
    shutil.copytree(plain, folder)
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **ODD}))
    return folder


def effective(engine, sampling):
    """What transformers makes of the engine's configuration for a call, field by field."""
    config = generation_config(sampling, 4, sorted(engine.end_ids), engine.tokenizer.pad_token_id)
    found, more = engine.model._prepare_generation_config(config)
    assert not more
    return {name: value for name, value in vars(found).items() if not name.startswith("_")}


@pytest.mark.parametrize("sampling", [Sampling(24), Sampling(24, 0.8, 0.9, seed=3)])
def test_a_models_own_settings_change_neither_tokens_nor_the_effective_configuration(plain, odd, tiny_pool, sampling):
    from scope.conditions import Condition
    from scope.prompts import user_prompt

    prompts = [user_prompt(item, c) for item in tiny_pool[0][:2] for c in Condition]
    engines = [local_engine(folder) for folder in (plain, odd)]
    assert effective(engines[0], sampling) == effective(engines[1], sampling)
    tokens = [[list(out.token_ids) for out in e.generate(e.render(prompts), sampling)] for e in engines]
    assert tokens[0] == tokens[1]
    assert engines[0].identity() == engines[1].identity(), "and one request id is right for both"


@pytest.mark.parametrize("sampling", [Sampling(24), Sampling(24, 0.8, 0.9, seed=3)])
def test_engines_decode_alike_field_by_field(plain, sampling):
    """The fields that vLLM, its server and transformers have, as each gets them for the same request."""
    here = effective(local_engine(plain), sampling)
    offline = sampling_fields(max_tokens=24, **sampling.drawn())
    recipe = load("smollm2_135m", ["engine=vllm_serve"])
    served = {**server_fields(recipe.engine.temperature), **recipe.engine.extra, **sampling.drawn()}
    for name in NEUTRAL:
        assert served[name] == offline[name] == {**NEUTRAL, **sampling.drawn()}[name], name
    assert served["temperature"] == offline["temperature"] == (here["temperature"] if here["do_sample"] else 0.0)
    assert here["do_sample"] == bool(sampling.temperature)
    for name in ("top_p", "repetition_penalty", *(["top_k"] if sampling.temperature else [])):
        assert here[name] == offline[name], name
    # Where the names differ: None and 0 are the same to transformers, and it has no other penalties.
    assert (here["min_p"] or 0.0) == offline["min_p"] and (here["min_new_tokens"] or 0) == offline["min_tokens"]
    assert here["num_return_sequences"] == offline["n"] and here["num_beams"] == 1
    assert offline["bad_words"] is offline["logit_bias"] is offline["stop"] is None
    assert here["bad_words_ids"] is here["sequence_bias"] is here["stop_strings"] is None


def test_every_field_of_the_library_is_neutral_or_none():
    """Of a GenerationConfig, whatever fields its version has: what is not in the table is None."""
    from transformers import GenerationConfig

    config = generation_config(Sampling(24), 4, [2], 2)
    ours = {"max_new_tokens": 4, "eos_token_id": [2], "pad_token_id": 2, "do_sample": False, "temperature": 1.0}
    ours["top_k"] = None  # of greedy decoding, which does not read it
    wanted = {**dict.fromkeys(open_fields(GenerationConfig())), **GENERATION, **ours, "return_dict_in_generate": True}
    assert {n: getattr(config, n) for n in wanted} == wanted
    assert set(GENERATION) <= set(vars(GenerationConfig())), "no field is misspelt"
    defaults = GenerationConfig._get_default_generation_params()
    off = {name for name, value in GENERATION.items() if name in defaults and defaults[name] != value}
    assert off == {"top_k"}, "the library's own default is neutral but for top_k"


def test_a_server_gets_decoding_only_where_the_recipe_sets_it():
    assert server_fields(None) == {}
    assert server_fields(0.0) == {"temperature": 0.0, **{name: NEUTRAL[name] for name in PROTOCOL}}
    assert load("smollm2_135m", ["engine=openai"]).engine.extra == {}


def test_opsd_samples_from_the_models_own_distribution(plain, odd):
    """TRL's sampler under a model with odd settings: the same effective configuration, and nothing cut off."""
    from transformers import GenerationConfig
    from trl.experimental.sdft import SDFTConfig

    from scope.models import resolve_model
    from scope.training import setup
    from scope.training.opsd import sampling_arguments

    chosen = sampling_arguments()
    assert set(chosen) <= set(SDFTConfig.__dataclass_fields__)
    rest = chosen.pop("generation_kwargs")
    fields = {**chosen, **rest, "disable_compile": True}
    found = []
    for folder in (plain, odd):
        recipe = load("smollm2_135m", ["trainer=opsd", f"model.base={folder}", "model.dtype=float32"])
        model = setup.base_model(recipe, resolve_model(str(folder)))
        asked = GenerationConfig(do_sample=True, max_new_tokens=4, eos_token_id=[2], pad_token_id=2, **fields)
        effective, _ = model._prepare_generation_config(asked)
        found.append({n: v for n, v in vars(effective).items() if not n.startswith("_")})
    assert found[0] == found[1]
    assert {name: found[1][name] for name in GENERATION} == GENERATION
