"""A model of the Hugging Face hub -> a local snapshot. What is cached completely is used without any connection."""

from __future__ import annotations

import glob
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.artifacts.cache_folders import offline_variable
from headway.artifacts.hub_cache import cached_ids, find_snapshot
from headway.artifacts.hub_errors import RETRIED_STATUSES, hub_error
from headway.artifacts.hub_files import WantedFiles, one_gguf_model, wanted_files
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.reference import nearest
from headway.artifacts.registry import registry
from headway.errors import ArtifactError

logger = logging.getLogger(__name__)
TRIES: Final = 4
MAX_WAIT_SECONDS: Final = 30.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HubModel:
    """`path` is the snapshot folder, or a GGUF file in it; `commit` is the revision it has."""

    path: Path
    commit: str


def hub_model(
    repo: str, revision: str | None, variant: str | None, cache: Path, *, progress: ProgressCallback | None = None
) -> HubModel:
    """Find `repo` in `cache`, or download what a model needs of it.

    `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` are honoured. A branch that is cached is not looked up again: `hf
    download` updates it. Raises ArtifactError.
    """
    cached = find_snapshot(repo, revision, variant, cache)
    if cached is not None and (cached.lacks is None or (cached.lacks == "a tokenizer" and offline_variable(hub=True))):
        return HubModel(_pick(cached.folder, variant), cached.commit)
    if (variable := offline_variable(hub=True)) is not None:
        raise _offline(repo, revision, cache, variable, None if cached is None else cached.lacks)
    return _download(repo, revision, variant, cache, progress)


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
    from huggingface_hub import HfApi, snapshot_download

    endpoint = os.environ.get("HF_ENDPOINT") or None
    token = token_variable()
    api = HfApi(endpoint=endpoint, token=token.value)
    info = _with_retries(
        lambda: api.model_info(repo, revision=revision, files_metadata=True), repo, revision, token.source, cache
    )
    sizes = {sibling.rfilename: sibling.size for sibling in info.siblings or ()}
    wanted = wanted_files(repo, sizes, variant)
    bars = _bar_class(repo, _total(wanted, sizes), progress)
    folder = ""
    for names in (wanted.side, wanted.weights):
        if not names:
            continue

        def fetch(names: tuple[str, ...] = names) -> str:
            exact = [glob.escape(name) for name in names]
            return snapshot_download(
                repo,
                revision=revision,
                cache_dir=cache,
                allow_patterns=exact,
                endpoint=endpoint,
                token=token.value,
                tqdm_class=bars,
            )

        folder = _with_retries(fetch, repo, revision, token.source, cache)
    return HubModel(_pick(Path(folder), variant), info.sha or Path(folder).name)


def _total(wanted: WantedFiles, sizes: dict[str, int | None]) -> int | None:
    parts = [sizes[name] for name in (*wanted.side, *wanted.weights)]
    return sum(part for part in parts if part is not None) if None not in parts else None


def _with_retries(call: Callable[[], T], repo: str, revision: str | None, token_source: str | None, cache: Path) -> T:
    """Call, repeating after 429 and 5xx with back-off or as long as `Retry-After` says."""
    import huggingface_hub.errors as hub_errors

    transport: Any = vars(hub_errors)["HTTPError"]  # of the HTTP library that this huggingface_hub is built on
    for attempt in range(1, TRIES + 1):
        try:
            return call()
        except (OSError, transport, hub_errors.EntryNotFoundError, hub_errors.HFValidationError) as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if status not in RETRIED_STATUSES or attempt == TRIES:
                raise hub_error(error, repo, revision, token_source, cache) from None
            stated = error.response.headers.get("retry-after", "")  # type: ignore[union-attr]
            time.sleep(min(MAX_WAIT_SECONDS, float(stated) if stated.isdecimal() else 2.0 ** (attempt - 1)))
    raise AssertionError("unreachable: the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class Token:
    """`source` is the name of the variable or file it came from, for messages; the value is never shown."""

    value: str | None
    source: str | None


def token_variable() -> Token:
    """The hub token that the library would take, with where it came from; white space around it is cut with a warning."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        raw = os.environ.get(name)
        if raw and raw.strip():
            if raw != raw.strip():
                logger.warning("The token in %s has white space around it, which was cut off.", name)
            return Token(raw.strip(), name)
    from huggingface_hub import get_token

    value = get_token()
    return Token(value, "the file of `hf auth login`" if value else None)


def _bar_class(label: str, total: int | None, progress: ProgressCallback | None) -> type[Any]:
    """A class that huggingface_hub takes for tqdm: its byte bars become calls of `progress`, nothing is printed.

    Bars that count files (unit "it") are ignored; the byte bars of all files are added up.
    """
    tqdm: Any = importlib.import_module("tqdm.auto").tqdm
    lock, done = threading.Lock(), [0]

    class QuietBar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any):
            self._counts_bytes = options.get("unit") == "B"
            options.pop("name", None)
            super().__init__(*arguments, **{**options, "disable": True})
            self._add(options.get("initial") or 0)

        def update(self, n: float | None = 1) -> bool | None:
            self._add(n or 0)
            return None

        def _add(self, n: float) -> None:
            if progress is None or not self._counts_bytes or not n:
                return
            with lock:
                done[0] += int(n)
                now = done[0] if total is None else min(done[0], total)
                progress(label, now, total)

    return QuietBar
