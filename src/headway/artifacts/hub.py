"""A model of the Hugging Face hub -> a local snapshot. What is cached completely is used without any connection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headway.artifacts.cache_folders import offline_variable
from headway.artifacts.hub_cache import NO_TOKENIZER, cached_ids, find_snapshot, spelled_as_cached
from headway.artifacts.hub_download import download_files
from headway.artifacts.hub_errors import Asked
from headway.artifacts.hub_files import one_gguf_model, side_files, wanted_files
from headway.artifacts.hub_listing import list_repository
from headway.artifacts.hub_token import find_token
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.reference import nearest
from headway.artifacts.registry import registry
from headway.artifacts.resumable_download import SILENCE_SECONDS, http_client
from headway.errors import ArtifactError
from headway.wire.environment_limit import environment_limit

logger = logging.getLogger(__name__)
_NO_NETWORK: Final = frozenset({"hub_unreachable", "hub_unavailable", "hub_rate_limited"})


@dataclass(frozen=True, slots=True)
class HubModel:
    """`path` is the snapshot folder, or a GGUF file in it; `commit` is the revision it has."""

    path: Path
    commit: str


def hub_model(
    repo: str, revision: str | None, variant: str | None, cache: Path, *, progress: ProgressCallback | None = None
) -> HubModel:
    """Find `repo` in `cache`, or download what a model needs of it and the cache lacks.

    `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE`, `HF_HUB_ETAG_TIMEOUT` and `HF_HUB_DOWNLOAD_TIMEOUT` are honoured. A branch that is cached is not looked up again: `hf
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
        folder, commit = _download(repo, revision, cache, lambda name, sizes: _model_files(name, sizes, variant), progress)
        return HubModel(_pick(folder, variant), commit)
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
    repo = spelled_as_cached(repo, cache)
    cached = find_snapshot(repo, revision, None, cache)
    if cached is not None and enough(cached.folder):
        return cached.folder
    if (variable := offline_variable(hub=True)) is not None:
        raise _offline(repo, revision, cache, variable, None if cached is None else "the files that are needed")
    return _download(repo, revision, cache, lambda name, sizes: side_files(sizes), progress)[0]


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


def _model_files(repo: str, sizes: Mapping[str, int | None], variant: str | None) -> Sequence[str]:
    """Weights come last, so that complete weights mean a complete model."""
    wanted = wanted_files(repo, sizes, variant)
    return (*wanted.side, *wanted.weights)


def _download(
    repo: str,
    revision: str | None,
    cache: Path,
    choose: Callable[[str, Mapping[str, int | None]], Sequence[str]],
    progress: ProgressCallback | None,
) -> tuple[Path, str]:
    """Fetch the files that `choose` picks by name from (repository, sizes); returns the snapshot folder and its commit."""
    token = find_token()
    asked = Asked(repo, revision, token, cache)
    headers = {"Authorization": f"Bearer {token.value}"} if token.value else None
    silence = environment_limit("HF_HUB_DOWNLOAD_TIMEOUT", SILENCE_SECONDS)
    with http_client(headers, silence=silence) as client:
        listed = list_repository(client, asked)
        if listed.repo != repo:
            logger.warning("The hub calls %s %s; it is stored under that name", repo, listed.repo)
            asked = replace(asked, repo=listed.repo)
        names = choose(listed.repo, {name: file.promised.nbytes for name, file in listed.files.items()})
        chosen = [listed.files[name] for name in names]
        return download_files(client, asked, listed.commit, chosen, progress=progress), listed.commit
