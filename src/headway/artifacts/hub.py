"""A model of the Hugging Face hub -> a local snapshot. What is cached completely is used without any connection."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.artifacts.cache_folders import offline_variable
from headway.artifacts.hub_cache import NO_TOKENIZER, cached_ids, find_snapshot, spelled_as_cached
from headway.artifacts.hub_download import download_files, hub_files
from headway.artifacts.hub_errors import Asked, hub_endpoint, hub_error, hub_response
from headway.artifacts.hub_files import one_gguf_model, side_files, wanted_files
from headway.artifacts.hub_token import find_token
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.reference import nearest
from headway.artifacts.registry import registry
from headway.artifacts.resumable_download import RETRIED_STATUSES, wait
from headway.errors import ArtifactError

logger = logging.getLogger(__name__)
TRIES: Final = 4
INFO_SECONDS: Final = 15.0  # for connecting and for each pause in the answer
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_NO_NETWORK: Final = frozenset({"hub_unreachable", "hub_unavailable", "hub_rate_limited"})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HubModel:
    """`path` is the snapshot folder, or a GGUF file in it; `commit` is the revision it has."""

    path: Path
    commit: str


def hub_model(
    repo: str, revision: str | None, variant: str | None, cache: Path, *, progress: ProgressCallback | None = None
) -> HubModel:
    """Find `repo` in `cache`, or download what a model needs of it and the cache lacks.

    `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` are honoured. A branch that is cached is not looked up again: `hf
    download` updates it. Raises ArtifactError.
    """
    if (known := spelled_as_cached(repo, cache)) != repo:
        logger.warning("%s is taken as %s, the spelling in the cache: letter case matters", repo, known)
        repo = known
    cached = find_snapshot(repo, revision, variant, cache)
    if cached is not None and (cached.lacks is None or (cached.lacks == NO_TOKENIZER and offline_variable(hub=True))):
        return HubModel(_pick(cached.folder, variant), cached.commit)
    if (variable := offline_variable(hub=True)) is not None:
        raise _offline(repo, revision, cache, variable, None if cached is None else cached.lacks)
    try:
        return _download(repo, revision, variant, cache, progress)
    except ArtifactError as error:
        if cached is None or cached.lacks != NO_TOKENIZER or error.reason not in _NO_NETWORK:
            raise
        logger.warning("%s is used from the cache, without a tokenizer: %s", repo, error.message)
        return HubModel(_pick(cached.folder, variant), cached.commit)


def hub_small_files(
    repo: str, revision: str | None, cache: Path, enough: Callable[[Path], bool], *, progress: ProgressCallback | None = None
) -> Path:
    """The snapshot folder of `repo` with what lies beside the weights: configuration, tokenizer, templates. A cached
    snapshot is used as it is if it is `enough`. Raises ArtifactError."""
    cached = find_snapshot(repo, revision, None, cache)
    if cached is not None and enough(cached.folder):
        return cached.folder
    if (variable := offline_variable(hub=True)) is not None:
        raise _offline(repo, revision, cache, variable, None if cached is None else "the files that are needed")
    asked = Asked(repo, revision, find_token(), cache)
    info = _repository(asked)
    files = hub_files(info)
    chosen = side_files({name: file.promised.nbytes for name, file in files.items()})
    return download_files(asked, info.sha, [files[name] for name in chosen], progress=progress)


def _pick(folder: Path, variant: str | None) -> Path:
    """The GGUF file of a snapshot that has one model in this format and no config.json, else the folder."""
    names = [entry.name for entry in folder.iterdir() if entry.name.endswith(".gguf")]
    if variant is None and (folder / "config.json").exists() and any(folder.glob("*.safetensors")):
        return folder
    chosen = one_gguf_model(names, variant)
    return folder / chosen[0] if chosen else folder


def _offline(repo: str, revision: str | None, cache: Path, variable: str, lacks: str | None) -> ArtifactError:
    at = f"@{revision}" if revision else ""
    command = f"hf download {repo}{f' --revision {revision}' if revision else ''}"
    close = nearest(repo, (*cached_ids(cache), *registry()))
    hint = f" Did you mean {close}, which is there?" if close and close != repo else ""
    state = f"is only partly in {cache} (it lacks {lacks})" if lacks else f"is not in the cache {cache}"
    return ArtifactError(
        f"{repo}{at} {state}, and {variable} forbids the network",
        reason="offline_not_cached",
        param="model",
        fix=f"Run `{command}` where there is a network, or unset {variable}.{hint}",
    )


def _download(
    repo: str, revision: str | None, variant: str | None, cache: Path, progress: ProgressCallback | None
) -> HubModel:
    asked = Asked(repo, revision, find_token(), cache)
    info = _repository(asked)
    if info.id and info.id != repo and info.id.lower() == repo.lower():
        logger.warning("The hub calls %s %s; it is stored under that name", repo, info.id)
        asked = replace(asked, repo=info.id)
    files = hub_files(info)
    wanted = wanted_files(asked.repo, {name: file.promised.nbytes for name, file in files.items()}, variant)
    # Weights come last, so that complete weights mean a complete model.
    chosen = [files[name] for name in (*wanted.side, *wanted.weights)]
    return HubModel(_pick(download_files(asked, info.sha, chosen, progress=progress), variant), info.sha)


def _repository(asked: Asked) -> Any:
    """The `ModelInfo` of the repository, with the sizes and hashes of its files."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub_endpoint(), token=asked.token.value or False)
    info = _with_retries(
        lambda: api.model_info(asked.repo, revision=asked.revision, files_metadata=True, timeout=INFO_SECONDS), asked
    )
    if not isinstance(info.sha, str) or not _COMMIT.fullmatch(info.sha):
        raise ArtifactError(
            f"{asked.repo}: {hub_endpoint()} does not answer as a hub does: expected a commit of 40 hex digits, found {info.sha!r:.60}",
            reason="hub_answer",
            param="model",
            fix="Check HF_ENDPOINT.",
        )
    return info


def _with_retries(call: Callable[[], T], asked: Asked) -> T:
    """Call, repeating after 429 and 5xx with back-off or as long as `Retry-After` says."""
    import huggingface_hub.errors as hub_errors

    transport: Any = vars(hub_errors)["HTTPError"]  # of the HTTP library that this huggingface_hub is built on
    for attempt in range(1, TRIES + 1):
        try:
            return call()
        # ValueError: an answer that is no JSON, or JSON of another shape; KeyError and TypeError: as the second
        except (OSError, ValueError, KeyError, TypeError, transport) as error:
            answer = hub_response(error)
            if answer is None or answer.status_code not in RETRIED_STATUSES or attempt == TRIES:
                raise hub_error(error, asked) from None
            wait(answer.headers.get("retry-after"), attempt)
    raise AssertionError("unreachable: the last attempt returns or raises")
