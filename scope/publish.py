"""Publish a finished run's adapter or merged model on the hub, with its model card.

What is uploaded stands first in the arm's folder `publish/`: weights, config, tokenizer, card, manifest and
results, without any path of this machine. A push that fails leaves it there and changes nothing else. The
token is found and sent by huggingface_hub alone; here it is only looked up to keep it out of messages.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from scope import artifacts, launch, merge
from scope.artifacts import Refusal
from scope.recipe import Recipe
from scope.report.card import Product, card, find_product, hub_id, public

FOLDER = "publish"
SUFFIXES = (".safetensors", ".json", ".jinja", ".model", ".txt")
#: Of no use elsewhere, or a trainer's state.
LEFT_OUT = ("timings.json", "trainer_state.json", "manifest.json")
#: The tokenizer's own words may look like anything; they hold no paths.
VERBATIM = ("tokenizer.json", "vocab.json")


class PublishError(Refusal):
    """Nothing, or not all, was published; the run's folders are as they were."""


def push(recipe: Recipe) -> str:
    """Upload the recipe's `push` (adapter or merged) to `push_to`; returns the repository's address.

    Missing or changed products raise StageError with the command that makes them; whatever the hub or the
    network does raises PublishError in one sentence, with the command to push again.
    """
    import huggingface_hub
    from huggingface_hub import constants

    again = f"push again with: {recipe.command('-m scope.publish')}"
    if not recipe.push_to:
        raise PublishError("push_to is not set; add push_to=owner/name")
    product = find_product(recipe, recipe.push)
    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
    api = huggingface_hub.HfApi(endpoint=endpoint)
    folder = gather(recipe, product, _license(api, product))
    if huggingface_hub.get_token() is None:
        raise PublishError(
            f"{recipe.push_to}: not published: no token; log in with `hf auth login` or set HF_TOKEN. Everything to "
            f"be published is in {folder}; {again}"
        )
    try:
        repository = api.create_repo(recipe.push_to, exist_ok=True)
        api.upload_folder(
            repo_id=recipe.push_to,
            folder_path=folder,
            commit_message=f"{recipe.name}/{recipe.arm_name}: {recipe.push}",
        )
    except Exception as error:  # HTTP, network, disk and the library's own: all mean "not published"
        reason = redacted(_reason(error, recipe.push_to, endpoint))
        raise PublishError(
            f"{recipe.push_to}: not published: {reason}. Everything to be published is in {folder}; {again}"
        ) from None
    print(f"publish: {sum(1 for _ in folder.iterdir())} files of {folder} at {repository}")
    return str(repository)


def gather(recipe: Recipe, product: Product, license_id: str | None = None) -> Path:
    """Write everything that is published to one folder: weights linked, JSON without paths, card last."""
    folder = recipe.folder(FOLDER) / product.kind
    with artifacts.stage_lock(folder.parent), artifacts.replacing_folder(folder) as target:
        for file in sorted(product.folder.iterdir()):
            if file.suffix not in SUFFIXES or file.name in LEFT_OUT or file.name.startswith("."):
                continue
            plain = json.loads(file.read_text("utf-8")) if file.suffix == ".json" else None
            if plain is None or file.name in VERBATIM or public(plain) == plain:
                _link(file, target / file.name)
            else:
                artifacts.write_json(target / file.name, public(plain))
        artifacts.write_json(target / "manifest.json", public(product.manifest))
        if product.results is not None:
            artifacts.write_json(target / "results.json", public(product.results))
        artifacts.write_text(target / "README.md", card(recipe, product, license_id))
    return folder


def write_cards(recipe: Recipe) -> None:
    """Put a model card into the folders of the adapter and, where there is one, of the merged model."""
    for kind in ("adapter", "merged"):
        if kind == "adapter" or artifacts.read_manifest(recipe.folder(merge.FOLDER)) is not None:
            product = find_product(recipe, kind)
            artifacts.write_text(product.folder / "README.md", card(recipe, product))


def redacted(text: str) -> str:
    """Text without the token, anything that looks like one, and credentials in addresses."""
    from huggingface_hub import get_token

    for secret in {get_token(), os.environ.get("HF_TOKEN"), os.environ.get("HUGGING_FACE_HUB_TOKEN")}:
        if secret and secret.strip():
            text = text.replace(secret.strip(), "***")
    text = re.sub(r"hf_\w{4,}", "***", text)
    return re.sub(r"://[^/\s@]+@", "://", text)


def _license(api: Any, product: Product) -> str | None:
    """The base's license as the hub gives it; None where it does not."""
    base = hub_id(product.trained["recipe"]["model"]["base"])
    if base is None:
        return None
    try:
        found = api.model_info(base, timeout=10).card_data
    except Exception:  # only a field of the card: base_license is asked next
        return None
    return found and found.get("license")


def _reason(error: BaseException, repository: str, endpoint: str) -> str:
    """What went wrong, without a full stop: the innermost HTTP answer, or the last error's first line."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    response = next((r for e in chain if (r := getattr(e, "response", None)) is not None), None)
    if response is None:
        first = next((line.strip() for line in str(chain[-1]).splitlines() if line.strip()), "")
        return f"{endpoint} could not be reached or broke off ({type(chain[-1]).__name__}: {first})".replace(": )", ")")
    said = next((m for e in chain if (m := getattr(e, "server_message", None))), "")
    reasons = {
        401: f"{endpoint} does not accept the token; log in with `hf auth login` or set HF_TOKEN",
        403: f"the token may not write to {repository}; use one that may, or another push_to",
    }
    status = response.status_code
    reason = reasons.get(status, f"{endpoint} answered with an error")
    return f"{reason} (HTTP {status}{': ' + ' '.join(said.split())[:200] if said else ''})"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # no hard links on this file system
        shutil.copyfile(source, target)


def stage(recipe: Recipe) -> None:
    if recipe.dry_run:
        print(card(recipe, find_product(recipe, recipe.push)))
    else:
        push(recipe)


if __name__ == "__main__":
    launch.main(stage, __doc__, program=["-m", "scope.publish"])
