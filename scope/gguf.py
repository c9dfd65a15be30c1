"""A GGUF file -> a model folder with config, bf16 safetensors and tokenizer.

By hand, since every ready way is slow: the gguf package's reader takes 11 s for a vocabulary of 150,000,
transformers uses it several times over, and its tokenizer lacks SmolLM2's digit splitting. Only the block
formats come from the package. Neither torch nor transformers is imported.
"""

from __future__ import annotations

import json
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scope.artifacts import Refusal

_GGUF_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SLICE = 1 << 17  # values dequantised at once: what stays in a core's cache is three times as fast
_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
_TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _read_gguf(path: Path) -> tuple[dict[str, Any], list[tuple[str, list[int], int, Any]]]:
    """(metadata, tensors) of a GGUF; a tensor is (name, shape, ggml type, its bytes, flat uint8)."""
    import numpy as np
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    data = np.memmap(path, np.uint8, "r")
    buffer: Any = memoryview(data)  # type: ignore[arg-type]  # numpy's stubs do not say that arrays are buffers
    at = 8  # after magic and version

    def read(kind: int) -> Any:
        nonlocal at
        if kind == 8:  # string
            start = at + 8
            at = start + struct.unpack_from("<Q", buffer, at)[0]
            return str(buffer[start:at], "utf-8")
        if kind == 9:  # array
            item, count = read(4), read(10)
            return [read(item) for _ in range(count)]
        form = "<" + _GGUF_NUMBERS[kind]
        start, at = at, at + struct.calcsize(form)
        return struct.unpack_from(form, buffer, start)[0]

    n_tensors, n_meta = read(10), read(10)
    meta = {read(8): read(read(4)) for _ in range(n_meta)}
    heads = [(read(8), [read(10) for _ in range(read(4))], read(4), read(10)) for _ in range(n_tensors)]
    align = meta.get("general.alignment", 32)
    base = -(-at // align) * align
    tensors = []
    for name, dims, kind, offset in heads:
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        count = int(np.prod(dims))
        tensors.append((name, dims[::-1], kind, data[base + offset :][: count // block * size]))
    return meta, tensors


def convert(gguf: Path, out: Path, eos_ids: list[int]) -> None:
    """Write config, generation settings, tokenizer and bf16 weights of a checked GGUF into `out`."""
    meta, tensors = _read_gguf(gguf)
    arch, pre = meta["general.architecture"], meta.get("tokenizer.ggml.pre")
    if arch not in _ARCHITECTURES or pre not in ("qwen2", "smollm") or meta.get("tokenizer.ggml.add_bos_token"):
        raise Refusal(f"The mirror is a {arch} model with a {pre} tokenizer, which is not known here.")
    hidden, heads = meta[f"{arch}.embedding_length"], meta[f"{arch}.attention.head_count"]
    ids = {key: meta[f"tokenizer.ggml.{key}_token_id"] for key in ("eos", "bos")}
    ids["pad"] = meta["tokenizer.ggml.padding_token_id"]
    config = {
        "architectures": [_ARCHITECTURES[arch]],
        "model_type": arch,
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        "hidden_size": hidden,
        "intermediate_size": meta[f"{arch}.feed_forward_length"],
        "num_hidden_layers": meta[f"{arch}.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": meta[f"{arch}.attention.head_count_kv"],
        "max_position_embeddings": meta[f"{arch}.context_length"],
        # the file holds float32; seven digits give back the 1e-06 that was meant
        "rms_norm_eps": float(f"{meta[f'{arch}.attention.layer_norm_rms_epsilon']:.7g}"),
        "rope_theta": meta[f"{arch}.rope.freq_base"],
        "hidden_act": "silu",
        "tie_word_embeddings": all(name != "output.weight" for name, *_ in tensors),
        "dtype": "bfloat16",
        **{f"{key}_token_id": value for key, value in ids.items()},
    }
    # No sampling defaults: engines pass their sampling explicitly, and a stray default would leak in.
    generation = {"eos_token_id": eos_ids, "pad_token_id": ids["pad"]}
    for file, content in (("config.json", config), ("generation_config.json", generation)):
        (out / file).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    _write_tokenizer(meta, ids, out)
    _write_weights(tensors, config, out / "model.safetensors")


def _write_tokenizer(meta: dict[str, Any], ids: dict[str, int], out: Path) -> None:
    """The byte-level BPE tokenizer as the hub's tokenizer.json has it."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    vocab = {t: i for i, (t, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind != 5}  # 5: padding rows
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    byte_level, split = pre_tokenizers.ByteLevel, pre_tokenizers.Split
    if meta["tokenizer.ggml.pre"] == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
        first, second = split(Regex(_QWEN2_SPLIT), "isolated"), byte_level(False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, second])
    else:
        digits = pre_tokenizers.Digits(individual_digits=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level(False)])
    tokenizer.decoder = decoders.ByteLevel()
    # 3: control; 4: user-defined, matched whole too, but kept in the text when special tokens are skipped
    marked = [(token, kind == 3) for token, kind in zip(tokens, kinds, strict=True) if kind in (3, 4)]
    added = [AddedToken(token, normalized=False, special=special) for token, special in marked]
    tokenizer.add_tokens(added)
    tokenizer.save(str(out / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",  # takes tokenizer.json as it is
        # No bos_token: neither model begins with one, and some trainers prepend whatever is named.
        "eos_token": tokens[ids["eos"]],
        "pad_token": tokens[ids["pad"]],
        "additional_special_tokens": [token for token, special in marked if special],
        "model_max_length": meta[f"{meta['general.architecture']}.context_length"],
        "clean_up_tokenization_spaces": False,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (out / "chat_template.jinja").write_text(meta["tokenizer.chat_template"], encoding="utf-8")


def _write_weights(tensors: list[tuple[str, list[int], int, Any]], config: dict[str, Any], path: Path) -> None:
    """Dequantise slice by slice, each put at its place in the file; memory stays flat."""
    import numpy as np
    from gguf import GGMLQuantizationType, dequantize

    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end, jobs = 0, []
    for name, shape, kind, data in tensors:
        *block, part, suffix = name.split(".")  # blk.7.attn_q.weight, output_norm.weight
        prefix = f"model.layers.{block[1]}." if block else ""
        size = 2 * int(np.prod(shape))
        header[f"{prefix}{_TENSORS[part]}.{suffix}"] = {
            "dtype": "BF16",
            "shape": shape,
            "data_offsets": [end, end + size],
        }
        rows = data.reshape(shape[0] if len(shape) > 1 else 1, -1)
        order = np.arange(len(rows))
        if config["model_type"] == "llama" and part in ("attn_q", "attn_k"):
            # GGUF interleaves the rotary halves of a head; whole rows move, so packed bytes can
            n = config["num_attention_heads" if part == "attn_q" else "num_key_value_heads"]
            order = order.reshape(n, -1, 2).swapaxes(1, 2).ravel()
        step = max(1, _SLICE // shape[-1])
        for i in range(0, len(rows), step):
            jobs.append((rows, order[i : i + step], kind, end + i * size // len(rows)))
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    base = 8 + len(text)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.flush()
        os.posix_fallocate(f.fileno(), base, end)  # a full disk shows now, not after the work

        def write(job: tuple[Any, Any, int, int]) -> None:
            rows, wanted, kind, offset = job
            packed = rows[wanted].reshape(1, -1)  # one row: the package works in groups of rows, slow when small
            bits = dequantize(packed, GGMLQuantizationType(kind)).view(np.uint32)
            rounded = bits >> 16
            rounded &= 1
            rounded += 0x7FFF  # to the nearest, ties to even, as torch casts
            rounded += bits
            rounded >>= 16
            os.pwrite(f.fileno(), rounded.astype("<u2").tobytes(), base + offset)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(write, jobs):
                pass
