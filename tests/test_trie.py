"""scope.trie against naive implementations: a dictionary of prefixes, and one plain forward per sequence."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from transformers import (
    BloomConfig,
    DynamicCache,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from scope import trie

VOCABULARY = 331
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "initializer_range": 0.15,  # wide enough that a wrong mask or depth moves a log-probability visibly
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
FAMILIES = {
    "llama": (LlamaForCausalLM, LlamaConfig, {}),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {}),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {}),
    "mistral": (MistralForCausalLM, MistralConfig, {"sliding_window": None}),
}

# Few distinct ids, so that prefixes, duplicates and branches are common; far apart, so that none is an index.
ids = st.sampled_from([0, 1, 2, 330])
sequence_lists = st.lists(st.lists(ids, max_size=10), max_size=8)
EXAMPLES = {
    "nothing": [],
    "one empty": [[]],
    "single tokens": [[5], [7], [5]],
    "duplicates": [[1, 2, 3], [1, 2, 3]],
    "prefixes": [[1, 2], [1, 2, 3, 4], [], [1], [1, 2, 3]],
    "branches": [[1, 2, 3, 9], [1, 2, 4], [8, 2, 3], [1, 2, 3, 7, 7, 7], [1, 2, 4, 4]],
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Models this small are slower on several threads, much slower where other work shares the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def build(family: str, attention: str = "sdpa"):
    architecture, config, extra = FAMILIES[family]
    torch.manual_seed(0)
    return architecture._from_config(config(**SHAPE, **extra), attn_implementation=attention).eval()


@pytest.fixture(scope="module", params=FAMILIES)
def model(request):
    return build(request.param)


@pytest.fixture(scope="module")
def llama():
    return build("llama")


def quartet(seed: int = 0) -> tuple[list[list[int]], list[int]]:
    """Eight sequences, four prompts of one stem with two completions each, and their prompt lengths."""
    random = torch.Generator().manual_seed(seed)

    def draw(n: int) -> list[int]:
        return torch.randint(1, VOCABULARY, (n,), generator=random).tolist()

    prompts = [[*stem, *draw(n)] for stem in [draw(12)] for n in (2, 6, 7, 9)]
    answers = [draw(5), draw(8)]
    return [[*p, 3, *a] for p in prompts for a in answers], [len(p) for p in prompts for _ in answers]


def plain(model, sequence: list[int]) -> torch.Tensor:
    """Log-probability of every token but the first, from a forward of this sequence alone."""
    if len(sequence) < 2:
        return torch.zeros(0)
    tokens = torch.tensor([sequence])
    logits = model(tokens).logits[0, :-1].double()  # in fp32 log_softmax is off by 2e-5 a token with 49,152 ids
    return logits.log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0].float()


def plain_sums(model, sequences, prompt_lengths) -> torch.Tensor:
    return torch.stack([plain(model, s)[n - 1 :].sum() for s, n in zip(sequences, prompt_lengths, strict=True)])


# --- layout -------------------------------------------------------------------------------------------------


def check_layout(sequences: list[list[int]]) -> None:
    packed = trie.pack(sequences)
    prefixes = {}  # position -> the prefix it stands for, read from the paths
    for sequence, path in zip(sequences, packed.paths, strict=True):
        assert len(path) == len(sequence)
        for t, position in enumerate(path.tolist()):
            assert prefixes.setdefault(position, tuple(sequence[: t + 1])) == tuple(sequence[: t + 1])
    assert len(set(prefixes.values())) == len(prefixes) == len(packed)
    assert set(prefixes.values()) == {tuple(s[: t + 1]) for s in sequences for t in range(len(s))}

    layout = [prefixes[i] for i in range(len(packed))]
    assert packed.tokens.tolist() == [p[-1] for p in layout]
    assert packed.depth.tolist() == [len(p) - 1 for p in layout]
    assert packed.edges.token.tolist() == packed.tokens.tolist()
    assert packed.edges.child.tolist() == list(range(len(packed)))
    assert packed.edges.parent.tolist() == [layout.index(p[:-1]) if p[:-1] else -1 for p in layout]
    ancestors = [[q[: len(k)] == k for k in layout] for q in layout]
    assert trie.attention_mask(packed)[0, 0].tolist() == ancestors
    for tensor in (packed.tokens, packed.depth, packed.end, *packed.edges, *packed.paths):
        assert tensor.dtype == torch.long and tensor.ndim == 1

    seen: dict[tuple[int, ...], int] = {}  # children of a node stand in the order in which they first appear
    for s in sequences:
        for t in range(len(s)):
            seen.setdefault(tuple(s[: t + 1]), len(seen))
    for a, b in itertools.pairwise(layout):
        for i in range(min(len(a), len(b))):
            if a[: i + 1] != b[: i + 1]:
                assert seen[a[: i + 1]] < seen[b[: i + 1]]
                break


@given(sequence_lists, st.integers(1, 30), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_bins_hold_all_in_order_within_the_cap_and_keep_what_belongs_together(sequences, most, labels):
    sequences = sorted(sequences)
    labels = labels[: len(sequences)]
    assert trie.size(sequences) == len(trie.pack(sequences))
    for groups in (None, labels):
        found = trie.bins(sequences, most, groups)
        assert [i for part in found for i in part] == list(range(len(sequences)))
        sizes = [len(trie.pack([sequences[i] for i in part])) for part in found]
        assert all(n <= most or len(part) == 1 for n, part in zip(sizes, found, strict=True))
    place = {i: n for n, part in enumerate(found) for i in part}
    for _, run in itertools.groupby(range(len(sequences)), lambda i: labels[i]):
        run = list(run)
        if len(trie.pack([sequences[i] for i in run])) <= most:
            assert len({place[i] for i in run}) == 1, "a group that a bin can hold is in one"


def test_bins_written_out():
    sequences = [[1, 2, 3], [1, 2, 4], [1, 5], [6, 7], [6, 8]]
    assert trie.bins(sequences, 5) == [[0, 1, 2], [3, 4]]
    assert trie.bins(sequences, 4) == [[0, 1], [2, 3], [4]], "1 2 3 4, then 1 5 6 7, then 6 8"
    assert trie.bins(sequences, 100) == [[0, 1, 2, 3, 4]]
    assert trie.bins(sequences, 6, "aabbb") == [[0, 1], [2, 3, 4]], "whole groups, though 1 5 had room"
    assert trie.bins(sequences, 3, "aabbb") == [[0], [1], [2], [3, 4]], "no bin holds a group"
    assert trie.bins([], 3) == []


@pytest.mark.parametrize("sequences", EXAMPLES.values(), ids=EXAMPLES)
def test_layout_by_hand_picked_example(sequences):
    check_layout(sequences)


@given(sequence_lists)
def test_layout_equals_dictionary_of_prefixes(sequences):
    check_layout(sequences)


def test_layout_written_out():
    packed = trie.pack([[5, 6, 7], [9], [5, 6, 8], [5, 4]])
    assert packed.tokens.tolist() == [5, 6, 7, 8, 4, 9]
    assert packed.depth.tolist() == [0, 1, 2, 2, 1, 0]
    assert packed.end.tolist() == [5, 4, 3, 4, 5, 6]
    assert packed.edges.parent.tolist() == [-1, 0, 1, 1, 0, -1]
    assert [p.tolist() for p in packed.paths] == [[0, 1, 2], [5], [0, 1, 3], [0, 4]]


def test_tensors_and_arrays_are_sequences_too():
    rows = [[1, 2, 3], [1, 2, 4]]
    for given_rows in (torch.tensor(rows), torch.tensor(rows, dtype=torch.int32).numpy()):
        assert trie.pack(given_rows).end.tolist() == trie.pack(rows).end.tolist()


def test_negative_token_is_refused():
    with pytest.raises(ValueError, match="sequence 1 holds the token id -100"):
        trie.pack([[1], [2, -100]])


def test_thousands_of_sequences_and_a_path_of_a_hundred_thousand():
    many = [[7] * 20 + [n % 50, n, 1] for n in range(5000)]
    assert len(trie.pack(many)) == 20 + 50 + 2 * 5000
    packed = trie.pack([list(range(100_000)), [0] * 100_000])  # deeper than any recursion limit
    assert len(packed) == 199_999 and packed.end[0] == 199_999


def random_trie(seed: int) -> list[list[int]]:
    """About 600 positions: branches at every height, so that blocks are skipped, partial and full."""
    random = torch.Generator().manual_seed(seed)
    stem = torch.randint(9, (300,), generator=random).tolist()
    cuts = torch.randint(300, (5,), generator=random).tolist()
    return [stem, *(stem[:cut] + torch.randint(9, (70,), generator=random).tolist() for cut in cuts)]


@pytest.mark.parametrize(
    "sequences",
    [[[1]], [[1] * 128], [[1] * 127, [2] * 2], [[1] * 256, [2] * 128], *map(random_trie, range(3))],
)
def test_block_mask_equals_the_one_made_from_the_dense_mask(sequences):
    from torch.nn.attention.flex_attention import create_block_mask, create_mask

    packed = trie.pack(sequences)
    size = len(packed)
    ours = trie.block_mask(packed, "cpu")
    theirs = create_block_mask(ours.mask_mod, 1, None, size, size, device="cpu")
    assert ours.shape == theirs.shape
    assert torch.equal(create_mask(ours.mask_mod, 1, 1, size, size, device="cpu"), trie.attention_mask(packed))
    for name in ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("kv_indices", "full_kv_indices"):  # beyond the count the indices mean nothing
        counts = getattr(ours, name.replace("indices", "num_blocks"))[0, 0]
        for row, count in enumerate(counts.tolist()):
            a, b = (getattr(mask, name)[0, 0, row, :count] for mask in (ours, theirs))
            assert torch.equal(a, b), name


# --- log-probabilities --------------------------------------------------------------------------------------


def test_completion_sums_equal_plain(model):
    sequences, lengths = quartet()
    packed = trie.pack(sequences)
    with torch.no_grad():
        sums = trie.completion_log_probs(model, packed, lengths)
        torch.testing.assert_close(sums, plain_sums(model, sequences, lengths), atol=1e-4, rtol=0)
    assert sums.dtype == torch.float32 and len(packed) < 0.7 * sum(map(len, sequences))


@settings(max_examples=8, deadline=None)
@given(sequences=sequence_lists.filter(lambda s: sum(map(len, s)) > 0), chunk=st.sampled_from([1, 3, 256]))
def test_every_token_equals_plain(model, sequences, chunk):
    packed, lengths = trie.pack(sequences), [min(1, len(s)) for s in sequences]
    edges = trie.completion_edges(packed, lengths)
    with torch.no_grad():
        scores = trie.edge_log_probs(model, packed, edges, chunk)
        tokens = trie.token_log_probs(scores, edges, packed, lengths)
        for ours, sequence in zip(tokens, sequences, strict=True):
            torch.testing.assert_close(ours, plain(model, sequence), atol=1e-4, rtol=0)
    assert scores.shape == edges.shape and scores.dtype == torch.float32


def test_a_wrong_mask_depth_or_edge_would_be_seen(model):
    """The comparison above has teeth: each part of the layout, spoilt on its own, moves the sums visibly."""
    sequences, lengths = quartet()
    packed = trie.pack(sequences)
    narrow = packed.end.clone()
    narrow[0] -= 2  # the last two positions, of which one is a parent, no longer see the root
    parent = (packed.edges.parent - 1).clamp(min=0)
    spoilt = {
        "plain causal mask": {"end": torch.full_like(packed.end, len(packed))},
        "root hidden from two positions": {"end": narrow},
        "positions of the layout": {"depth": torch.arange(len(packed))},
        "parent off by one": {"edges": packed.edges._replace(parent=parent)},
    }
    with torch.no_grad():
        right = plain_sums(model, sequences, lengths)
        for what, parts in spoilt.items():
            sums = trie.completion_log_probs(model, dataclasses.replace(packed, **parts), lengths)
            assert (sums - right).abs().max() > 1e-2, what


def test_separate_items_do_not_see_each_other(llama):
    (first, n), (second, m) = quartet(1), quartet(2)
    with torch.no_grad():
        alone = trie.completion_log_probs(llama, trie.pack(first), n)
        together = trie.completion_log_probs(llama, trie.pack(second + first), m + n)
    torch.testing.assert_close(together[len(second) :], alone, atol=1e-4, rtol=0)


def test_head_sees_each_parent_once_and_no_logits_stay(llama):
    sequences, lengths = quartet()
    packed = trie.pack(sequences)
    edges = trie.completion_edges(packed, lengths)
    rows, kept = [], []
    hook = llama.lm_head.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    try:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.shape) or x, lambda x: x):
            trie.edge_log_probs(llama, packed, edges, chunk=8)
    finally:
        hook.remove()
    parents = packed.edges.parent[edges].unique()
    assert sum(rows) == len(parents) < len(edges) and max(rows) <= 8
    assert kept and not any(shape[-1:] == (VOCABULARY,) for shape in kept)


def test_adapter_gradients_equal_plain(model):
    adapted = get_peft_model(
        build(model.config.model_type),
        LoraConfig(r=4, target_modules=["q_proj", "v_proj", "o_proj", "down_proj"], init_lora_weights=False),
    )
    sequences, lengths = quartet()
    weights = torch.linspace(-1, 1, len(sequences))  # like a preference loss: some up, some down

    def gradients(sums) -> dict[str, torch.Tensor]:
        adapted.zero_grad()
        (weights * sums).sum().backward()
        return {name: p.grad.clone() for name, p in adapted.named_parameters() if p.requires_grad}

    packed = trie.pack(sequences)
    right = gradients(plain_sums(adapted, sequences, lengths))
    ours = gradients(trie.completion_log_probs(adapted, packed, lengths, chunk=7))
    causal = dataclasses.replace(packed, end=torch.full_like(packed.end, len(packed)))
    wrong = gradients(trie.completion_log_probs(adapted, causal, lengths))
    assert len(right) == 16
    for name, grad in right.items():
        assert (ours[name] - grad).norm() < 1e-3 * grad.norm(), name
        assert (wrong[name] - grad).norm() > 1e-1 * grad.norm(), name

    with torch.no_grad(), adapted.disable_adapter():  # the reference, through the same path
        reference = trie.completion_log_probs(adapted, packed, lengths)
        torch.testing.assert_close(reference, plain_sums(adapted, sequences, lengths), atol=1e-4, rtol=0)


@pytest.mark.slow
def test_a_real_quartet_under_smollm2_equals_plain(smollm2):
    """Four authored prompts by its own template, two responses each: log-probabilities and adapter gradients."""
    from scope.conditions import Condition
    from scope.engines.local import render
    from scope.models import load_model, load_tokenizer
    from scope.pool import build_authored
    from scope.prompts import user_prompt

    tokenizer, (item,) = load_tokenizer(smollm2), build_authored(1, 0, "train")
    prompts = [render(tokenizer, user_prompt(item, condition), {}) for condition in Condition]
    answers = [tokenizer.encode(f"It is {value}. The final answer is {value}.") for value in (item.gold, item.wrong)]
    sequences = [[*prompt, *answer, tokenizer.eos_token_id] for prompt in prompts for answer in answers]
    lengths = [len(prompt) for prompt in prompts for _ in answers]
    adapter = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights=False)
    torch.manual_seed(0)
    adapted = get_peft_model(load_model(smollm2, "float32"), adapter)
    weights = torch.tensor([1.0, -1.0] * 4)
    sums, gradients = [], []
    for score in (
        lambda: plain_sums(adapted, sequences, lengths),
        lambda: trie.completion_log_probs(adapted, trie.pack(sequences), lengths),
    ):
        adapted.zero_grad()
        sums.append(score())
        (weights * sums[-1]).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in adapted.parameters() if p.requires_grad]))
    apart = (sums[0] - sums[1]).abs().max().item()
    bent = ((gradients[0] - gradients[1]).norm() / gradients[0].norm()).item()
    print(
        f"SmolLM2, {len(trie.pack(sequences))} positions: sums differ by {apart:.1e}, gradients by {bent:.1e} relative"
    )
    assert apart < 1e-4 and bent < 1e-3


def test_gradient_checkpointing_changes_nothing(llama):
    sequences, lengths = quartet()
    adapted = get_peft_model(build("llama"), LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False))
    packed, grads = trie.pack(sequences), []
    for checkpointing in (False, True):
        if checkpointing:
            adapted.gradient_checkpointing_enable({"use_reentrant": False})
            adapted.train()
        adapted.zero_grad()
        trie.completion_log_probs(adapted, packed, lengths).sum().backward()
        grads.append(torch.cat([p.grad.flatten() for p in adapted.parameters() if p.grad is not None]))
    torch.testing.assert_close(*grads)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="FlexAttention compiles for a minute on a CPU")
def test_flex_attention_takes_the_block_mask():
    sequences, lengths = quartet()
    flex = build("llama", "flex_attention").to("cuda")
    with torch.no_grad():
        sums = trie.completion_log_probs(flex, trie.pack(sequences), lengths).cpu()
        torch.testing.assert_close(sums, plain_sums(build("llama"), sequences, lengths), atol=1e-3, rtol=0)


def test_sums_written_out():
    packed = trie.pack([[1, 2, 3], [1, 2, 4], [1, 2], []])
    lengths = [1, 2, 2, 0]
    edges = trie.completion_edges(packed, lengths)
    assert edges.tolist() == [1, 2, 3]
    scores = torch.tensor([-1.0, -2.0, -4.0])
    assert trie.sequence_sums(scores, edges, packed, lengths).tolist() == [-3.0, -4.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="1 completion tokens have no edge"):
        trie.sequence_sums(scores[:2], edges[:2], packed, lengths)
    assert trie.sequence_sums(scores[:0], edges[:0], trie.pack([]), []).shape == (0,)


@pytest.mark.parametrize("lengths", [[0, 1], [1, 4], [1, -1]])
def test_impossible_prompt_lengths_are_refused(lengths):
    with pytest.raises(ValueError, match="A prompt has at least one token"):
        trie.completion_edges(trie.pack([[1, 2, 3], [1, 2]]), lengths)


def test_wrong_number_of_prompt_lengths_and_root_edges_are_refused(llama):
    packed = trie.pack([[1, 2, 3], [1, 2]])
    with pytest.raises(ValueError, match="1 prompt lengths were given for 2"):
        trie.completion_edges(packed, [1])
    with pytest.raises(ValueError, match="no edge into a root"):
        trie.edge_log_probs(llama, packed, torch.tensor([0, 1]))


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (MistralConfig(sliding_window=4096), "sliding-window"),
        (Qwen2Config(use_sliding_window=True, sliding_window=8, max_window_layers=1), "sliding-window"),
        (Gemma3TextConfig(), "sliding-window"),
        (BloomConfig(), "this model is a bloom"),
        (GPT2Config(), "this model is a gpt2"),
        (
            LlamaConfig(rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}),
            "dynamic rotary",
        ),
    ],
)
def test_refused_by_name(config, reason):
    assert reason in trie.supports_packing(config)


def test_accepted_and_refused_attention():
    for _, config, extra in FAMILIES.values():
        assert trie.supports_packing(config(**SHAPE, **extra)) is None
    assert trie.supports_packing(Qwen3Config(use_sliding_window=False, sliding_window=4096)) is None
    with pytest.raises(ValueError, match=r"^eager attention cannot take a packed mask"):
        trie.hidden_states(build("llama", "eager"), trie.pack([[1, 2]]))


# --- generation ---------------------------------------------------------------------------------------------


def left_pad(prompts: list[list[int]], width: int) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    return tokens, torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])


@pytest.mark.parametrize("extra", [0, 3])
def test_greedy_continuation_equals_generate_on_left_padded_prompts(model, extra):
    sequences, lengths = quartet()
    prompts = [s[:n] for s, n in zip(sequences, lengths, strict=True)] + [sequences[0][:5], sequences[0][:1]]
    width = max(map(len, prompts)) + extra
    packed, rows = trie.pack(prompts), [9, 0, 6, 8, 2, 1]
    tokens, mask = left_pad([prompts[i] for i in rows], width)
    settings = {
        "max_new_tokens": 12,
        "do_sample": False,
        "output_scores": True,
        "return_dict_in_generate": True,
    }
    right = model.generate(tokens, attention_mask=mask, **settings)

    def go_on(layout: trie.Packed):
        cache = trie.gather_cache(trie.prefill(model, layout), layout, rows, width)
        assert isinstance(cache, DynamicCache) and cache.get_seq_length() == width
        cache.crop(-1)
        return model.generate(tokens, attention_mask=mask, cache=cache, **settings)

    ours = go_on(packed)
    assert torch.equal(ours.sequences, right.sequences)
    torch.testing.assert_close(torch.stack(ours.scores), torch.stack(right.scores), atol=1e-3, rtol=0)
    wrong = go_on(dataclasses.replace(packed, depth=torch.arange(len(packed))))
    assert (wrong.scores[0] - right.scores[0]).abs().max() > 1e-2


def test_gathered_cache_equals_the_cache_of_each_prompt_alone(llama):
    sequences, _ = quartet()
    packed = trie.pack(sequences)
    cache = trie.gather_cache(trie.prefill(llama, packed), packed, [7, 0], 40)
    for row, number in enumerate([7, 0]):
        alone = llama(torch.tensor([sequences[number]]), use_cache=True).cache
        for ours, right in zip(cache.layers, alone.layers, strict=True):
            n = len(sequences[number])
            torch.testing.assert_close(ours.keys[row, :, -n:], right.keys[0], atol=1e-5, rtol=0)
            torch.testing.assert_close(ours.values[row, :, -n:], right.values[0], atol=1e-5, rtol=0)


def test_cache_of_an_empty_or_too_long_prompt_is_refused(llama):
    packed = trie.pack([[1, 2, 3], []])
    cache = trie.prefill(llama, packed)
    for number, width in ((0, 2), (1, 3)):
        with pytest.raises(ValueError, match="to be continued"):
            trie.gather_cache(cache, packed, [number], width)
