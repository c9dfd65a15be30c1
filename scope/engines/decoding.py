"""How a request is decoded, field by field, the same on every engine: what is not asked for changes nothing.

Servers and transformers fill what a request leaves open from the model's own generation_config.json, so nothing is left
open. `NEUTRAL` has the fields and their names as vLLM and its server spell them; each engine's own are made from it.
"""

from collections.abc import Sequence
from typing import Any

from scope.engines.base import Sampling

#: Field of a request -> the value that leaves the model's distribution as it is.
NEUTRAL: dict[str, Any] = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_tokens": 0,
    "ignore_eos": False,
}

#: Those that OpenAI's own protocol has; the others go to vLLM's server (recipes/engine/vllm_serve.yaml).
PROTOCOL = ("top_p", "presence_penalty", "frequency_penalty")

#: The fields of transformers' GenerationConfig that choose a token or an end, neutral. Every other field is None, also
#: one that a later version adds: the model's own configuration is not read (`scope.models.load_model`).
GENERATION: dict[str, Any] = {
    "num_return_sequences": 1,
    "top_p": NEUTRAL["top_p"],
    "top_k": NEUTRAL["top_k"],
    "min_p": None,  # 0.0 is refused in greedy decoding; None builds no filter
    "repetition_penalty": NEUTRAL["repetition_penalty"],
    "min_new_tokens": None,  # 0 tokens, without a warning of two lengths
    "min_length": 0,
    "num_beams": 1,
    "num_beam_groups": 1,
    "early_stopping": False,
    "length_penalty": 1.0,
    "diversity_penalty": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "remove_invalid_values": False,
    "renormalize_logits": False,
    "token_healing": False,
    "use_cache": True,
    "disable_compile": True,
}


def generation_config(sampling: Sampling, new_tokens: int, ends: Sequence[int], pad: int | None) -> Any:
    """transformers' GenerationConfig for the next `new_tokens` tokens."""
    from transformers import GenerationConfig

    config = GenerationConfig(max_new_tokens=new_tokens, eos_token_id=list(ends), pad_token_id=pad)
    chosen: dict[str, Any] = {"do_sample": bool(sampling.temperature), "temperature": sampling.temperature or 1.0}
    if sampling.temperature:
        chosen["top_p"] = sampling.top_p
    else:
        chosen["top_k"] = None  # greedy decoding does not read it, and transformers warns of any value
    # Set one by one: the constructor warns of fields that greedy decoding does not read, even where they are neutral.
    for name, value in {**dict.fromkeys(open_fields(config)), **GENERATION, **chosen}.items():
        setattr(config, name, value)
    config.return_dict_in_generate = True
    return config


def open_fields(config: Any) -> list[str]:
    """Names of a GenerationConfig's fields, whatever its version has, that nothing has set."""
    return [name for name, value in vars(config).items() if value is None and not name.startswith("_")]


def server_fields(temperature: float | None) -> dict[str, Any]:
    """What goes to a server whose decoding the recipe sets; nothing where it leaves decoding to the server."""
    if temperature is None:
        return {}
    return {"temperature": temperature, **{name: NEUTRAL[name] for name in PROTOCOL}}
