"""A local OpenAI-compatible server that really answers, with faults that can be switched on.

It renders the user message by the model's template and decodes with the project's own transformers engine, so
what it says is what `engine.kind=transformers` says. Which fault a request meets follows from its text and from
how often it was asked, not from timing, so that a run can be repeated.
"""

import hashlib
import json
import random
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scope.engines import Choices, Generated, Sampling
from scope.models import resolve_model
from scope.prompts import Chat
from scope.schema import EngineConfig, ModelConfig

#: What can go wrong with a request before it is answered well.
FAULTS = ("slow", "429", "500", "cut", "garbage", "empty", "odd")


class Server:
    """Serves one engine on 127.0.0.1 until `close`.

    rate: share of the requests that meet a fault of `faults`, each prompt at most `most` times; the attempt
    after that goes well. no_usage: share of the good answers without token counts. reasoning: whether answers
    carry `reasoning_content`. key: the only key that is let in; empty for any. knows: names of the token cap
    that the server understands; it ignores others, as real ones do.
    """

    def __init__(
        self,
        engine,
        rate=0.0,
        faults=FAULTS,
        most=3,
        no_usage=0.0,
        reasoning=False,
        key="",
        knows=("max_completion_tokens", "max_tokens"),
        structured=True,
        delay=0.0,
    ):
        self.engine, self.rate, self.faults, self.most = engine, rate, faults, most
        self.no_usage, self.reasoning, self.key, self.knows = no_usage, reasoning, key, knows
        self.structured, self.delay = structured, delay
        self.requests, self.answered, self.met = Counter(), Counter(), Counter()
        self.bodies, self.in_flight, self.most_in_flight = [], 0, 0
        self._memo, self._lock, self._model_lock = {}, threading.Lock(), threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=[0.05], daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def prime(self, prompts, cap, memo=None):
        """Decode many prompts in batches now; what the server says is the same either way."""
        if memo:
            self._memo |= memo
        left = [p for p in dict.fromkeys(prompts) if (p, cap) not in self._memo]
        rendered, sampling = self.engine.render(left), Sampling(cap)
        for batch in self.engine.plan(rendered, sampling):
            for i, out in zip(batch, self.engine.generate([rendered[i] for i in batch], sampling), strict=True):
                self._memo[left[i], cap] = out
        return self._memo

    # ------------------------------------------------------------ one request

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.in_flight += 1
                    server.most_in_flight = max(server.most_in_flight, server.in_flight)
                try:
                    server._reply(self, body)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                finally:
                    with server._lock:
                        server.in_flight -= 1

        return Handler

    def _reply(self, http, body):
        *system, user = (message["content"] for message in body["messages"])
        prompt = Chat(*system, user) if system else user
        with self._lock:
            self.bodies.append(body)
            attempt = self.requests[prompt]
            self.requests[prompt] += 1
        time.sleep(self.delay)
        token = http.headers.get("authorization", "").removeprefix("Bearer ") or http.headers.get("api-key", "")
        if self.key and token != self.key:
            return send(http, 401, error(f"Incorrect API key provided: {token}", "invalid_api_key"))
        chance = random.Random(hashlib.sha256(f"{attempt} {prompt}".encode()).digest())
        if attempt < self.most and chance.random() < self.rate:
            fault = chance.choice(self.faults)
            with self._lock:
                self.met[fault] += 1
            if fault != "slow":
                return self._fail(http, fault)
            time.sleep(0.5)
        with self._lock:
            self.answered[prompt] += 1
        return self._answer(http, body, prompt, chance)

    def _fail(self, http, fault):
        if fault == "429":
            return send(http, 429, error("slow down", "rate_limit_exceeded"), {"Retry-After": "0.2"})
        if fault == "500":
            return send(http, 500, error("internal error", None))
        if fault == "cut":
            http.send_response(200)
            http.send_header("Content-Length", "5000")
            http.end_headers()
            http.wfile.write(b'{"id": "chatcmpl-1", "choices": [{"mess')
            http.close_connection = True
            return None
        if fault == "garbage":
            return send(http, 200, "<html>\x00 504 Gateway Time-out </html>")
        if fault == "empty":
            return send(http, 200, {"id": "x", "object": "chat.completion", "choices": [], "usage": None})
        odd = {"index": 0, "message": {"role": "assistant", "content": ["?"]}, "finish_reason": "stop"}
        return send(http, 200, {"id": "x", "object": "chat.completion", "choices": [odd]})

    def _answer(self, http, body, prompt, chance):
        cap = next((body[name] for name in self.knows if name in body), 48)
        (ids,) = self.engine.render([prompt])
        window = self.engine.window()
        if len(ids) + cap > window:
            message = f"This model's maximum context length is {window} tokens, you asked for {len(ids) + cap}."
            return send(http, 400, error(message, "context_length_exceeded"))
        choice = body.get("structured_outputs", {}).get("choice") if self.structured else None
        with self._model_lock:
            if choice:
                (out,) = self.engine.score_choices([ids], Choices(tuple(choice)))
            elif (prompt, cap) in self._memo:
                out = self._memo[prompt, cap]
            else:
                (out,) = self.engine.generate([ids], Sampling(cap))
                self._memo[prompt, cap] = out
        message = {"role": "assistant", "content": out.text}
        if self.reasoning:
            message["reasoning_content"] = f"They ask me {prompt!r}."
        finish = "stop" if choice else out.finish_reason
        reply = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        if chance.random() >= self.no_usage:
            n = len(out.token_ids) + (out.finish_reason == "stop")
            reply["usage"] = {"prompt_tokens": len(ids), "completion_tokens": n, "total_tokens": len(ids) + n}
        return send(http, 200, reply)


class Scripted(Server):
    """Says `script(prompt)` to every prompt, over the same HTTP and with the same faults."""

    def __init__(self, engine, script, **settings):
        self.script = script
        super().__init__(engine, **settings)

    def _answer(self, http, body, prompt, chance):
        cap = next((body[name] for name in self.knows if name in body), 48)
        self._memo[prompt, cap] = Generated([0] * 3, self.script(prompt), "stop")
        return super()._answer(http, body, prompt, chance)


def error(message, code):
    return {"error": {"message": message, "type": "error", "code": code}}


def send(http, status, body, headers=()):
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    http.send_response(status)
    http.send_header("Content-Type", "application/json")
    http.send_header("Content-Length", str(len(data)))
    for name, value in dict(headers).items():
        http.send_header(name, value)
    http.end_headers()
    http.wfile.write(data)


def small_model(folder, smollm2, family="Llama", **settings):
    """A real model in every way but its knowledge: two layers of random weights, SmolLM2's tokenizer and template."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2.path)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
    config = getattr(transformers, f"{family}Config")(**{**sizes, **settings})
    getattr(transformers, f"{family}ForCausalLM")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def local_engine(folder, **settings):
    """The transformers engine on a model folder, in fp32."""
    from scope.engines.transformers import TransformersEngine

    model = ModelConfig(base=str(folder), dtype="float32")
    return TransformersEngine(resolve_model(str(folder)), model, EngineConfig(**settings))
