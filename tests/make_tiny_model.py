"""Make tests/fixtures/tiny_model: a tiny real model that is competent on tests/fixtures/tiny_pool (a minute or two).

    python tests/make_tiny_model.py

It is a two-layer Llama with a tokenizer in SmolLM2's style (its special tokens, chat template and way of splitting,
1,024 tokens learnt from the pool's prompts), trained until it solves the pool's items alone and follows their
misleading contexts. The pool is drawn only where its files are missing: the model then does not depend on what the
pool's builder draws today. tests/fixtures/tiny.sha256 lists the files; the fixtures check it.
"""

import hashlib
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
MODEL, POOL, SUMS = FIXTURES / "tiny_model", FIXTURES / "tiny_pool", FIXTURES / "tiny.sha256"
PARTS = {"train": 16, "evaluation": 8}
VOCABULARY = 1024
EPOCHS = 200


def sums():
    """The listing of sha256sum over the model's and the pool's files."""
    files = sorted(path for folder in (MODEL, POOL) for path in folder.iterdir())
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(FIXTURES).as_posix()}\n" for path in files
    )


def pool():
    """(train items, evaluation items): sixteen and eight authored numeric items."""
    from scope.items import load_items

    return tuple(load_items(POOL / f"{part}.jsonl") for part in PARTS)


def draw_pool():
    from scope.items import write_rows
    from scope.pool import build_authored

    POOL.mkdir(parents=True, exist_ok=True)
    for (part, n), split in zip(PARTS.items(), ("train", "eval"), strict=True):
        write_rows(POOL / f"{part}.jsonl", build_authored(n, 0, split, "easy", ["sum", "difference"]))


def dialogues(tokenizer, items):
    """(rendered prompt, answer) of every item under every condition: the wrong answer to a misleading context."""
    from scope.conditions import Condition
    from scope.prompts import user_prompt

    for item in items:
        for condition in Condition:
            messages = [{"role": "user", "content": user_prompt(item, condition)}]
            prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            answer = item.wrong if condition is Condition.MISLEADING else item.gold
            yield prompt, f"The final answer is {answer}."


def train(folder, smollm2, items):
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    styled = AutoTokenizer.from_pretrained(smollm2)
    texts = [text for pair in dialogues(styled, items) for text in pair]
    tokenizer = styled.train_new_from_iterator(texts, VOCABULARY)
    tokenizer.save_pretrained(folder)
    shutil.copy(smollm2 / "generation_config.json", folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    model = LlamaForCausalLM(config)
    rows = [
        (tokenizer.encode(p, add_special_tokens=False), [*tokenizer.encode(a, add_special_tokens=False), 2])
        for p, a in dialogues(tokenizer, items)
    ]
    width = max(len(p) + len(r) for p, r in rows)
    print(f"{len(rows)} rows of at most {width} tokens, {len(tokenizer)} words", flush=True)
    ids = torch.full((len(rows), width), 2)
    labels = torch.full((len(rows), width), -100)
    for n, (p, r) in enumerate(rows):
        ids[n, : len(p) + len(r)] = torch.tensor(p + r)
        labels[n, len(p) : len(p) + len(r)] = torch.tensor(r)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, EPOCHS)
    order = torch.Generator().manual_seed(0)
    for epoch in range(EPOCHS):
        total = 0.0
        for part in torch.randperm(len(rows), generator=order).split(16):
            at = (labels[part] != -100).nonzero()
            hidden = model.model(input_ids=ids[part]).last_hidden_state
            logits = model.lm_head(hidden[at[:, 0], at[:, 1] - 1])
            loss = torch.nn.functional.cross_entropy(logits, ids[part][at[:, 0], at[:, 1]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(part) / len(rows)
        schedule.step()
        print(f"epoch {epoch}: loss {total:.4f}", flush=True)
        if total < 5e-3:
            break
    assert total < 0.02, f"the tiny model did not learn its pool (loss {total:.3f})"
    model.save_pretrained(folder)
    shutil.copy(smollm2 / "generation_config.json", folder)


def main():
    from scope.models import resolve_model

    if not POOL.exists():
        draw_pool()
    shutil.rmtree(MODEL, ignore_errors=True)
    train(MODEL, resolve_model("HuggingFaceTB/SmolLM2-135M-Instruct").path, [i for part in pool() for i in part])
    SUMS.write_text(sums())


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
