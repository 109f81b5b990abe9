"""A whole package of the hub at one commit -> a local snapshot: every file that a task or decision model may be made of.

`hub_model` fetches what a language model needs from the top folder; packages keep parts in folders of their own and list
their files in manifests, so here all files of harmless kinds come.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from headway.artifacts.cache_folders import offline_variable
from headway.artifacts.hub_cache import storage_folder
from headway.artifacts.hub_download import download_files
from headway.artifacts.hub_errors import Asked
from headway.artifacts.hub_files import one_gguf_model
from headway.artifacts.hub_listing import Repository, list_repository
from headway.artifacts.hub_token import find_token
from headway.artifacts.licence import licence_of_folder
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.resumable_download import SILENCE_SECONDS, http_client
from headway.errors import ArtifactError
from headway.wire.environment_limit import environment_limit

T = TypeVar("T")
RETRY_WAITS: Final = (1.0, 2.0, 4.0)  # seconds, after a connection that failed
# head.pt, the readout of Kev packages, is a pickle: whoever reads it allows tensors and plain values only.
_KINDS: Final = (
    ".safetensors", ".json", ".txt", ".model", ".jinja", ".npz", ".sparrow", ".tiktoken", "head.pt", "SHA256SUMS", "README.md", "LICENSE",
)  # fmt: skip
_OTHER_RUNTIMES: Final = ("onnx/", "openvino/", "coreml/")
_READ_FIRST: Final = "README.md"  # its front matter names the licence


def hub_package(
    repo: str,
    commit: str,
    variant: str | None,
    cache: Path,
    *,
    consent: Callable[[str | None], None] = lambda licence: None,
    progress: ProgressCallback | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """The snapshot folder, or the GGUF file of it that `variant` names, downloaded first when something is not there.

    `consent` is told the licence that README.md states before anything large is fetched, and may raise. What was fetched
    once needs no connection again. Raises ArtifactError: `offline_not_cached`, `revision_differs`, and
    those of downloads.
    """
    note = storage_folder(repo, cache) / "headway-packages" / f"{commit}{'' if variant is None else f'-{variant}'}.json"
    snapshot = storage_folder(repo, cache) / "snapshots" / commit
    wanted = _noted(note)
    if wanted is not None and all((snapshot / name).is_file() for name in wanted):
        return _place(snapshot, variant)
    if (variable := offline_variable(hub=True)) is not None:
        if snapshot.is_dir():  # of another program; the family says what is missing
            return _place(snapshot, variant)
        raise ArtifactError(
            f"{repo}@{commit} is not completely in the cache {cache}, and {variable} forbids the network",
            reason="offline_not_cached", param="model", fix=f"Run `hf download {repo} --revision {commit}` where there is a network.",
        )  # fmt: skip
    token = find_token()
    asked = Asked(repo, commit, token, cache)
    headers = {"Authorization": f"Bearer {token.value}"} if token.value else None
    with http_client(headers, silence=environment_limit("HF_HUB_DOWNLOAD_TIMEOUT", SILENCE_SECONDS)) as client:
        listed = _patiently(lambda: list_repository(client, asked), sleep)
        if listed.commit != commit:
            raise ArtifactError(f"{repo}: asked for {commit}, the hub answered with {listed.commit}", reason="revision_differs", param="revision")
        chosen = _choose(listed, variant)
        files = [listed.files[name] for name in chosen]
        first = [file for file in files if file.name == _READ_FIRST]
        folder = _patiently(lambda: download_files(client, asked, commit, first, progress=None), sleep)
        consent(licence_of_folder(folder))
        folder = _patiently(lambda: download_files(client, asked, commit, files, progress=progress), sleep)
    _write_note(note, chosen)
    return _place(folder, variant)


def _patiently(action: Callable[[], T], sleep: Callable[[float], None]) -> T:
    """Four attempts while the hub cannot be reached; other errors are final, or were retried below."""
    for seconds in RETRY_WAITS:
        try:
            return action()
        except ArtifactError as error:
            if error.reason != "hub_unreachable":
                raise
        sleep(seconds)
    return action()


def _choose(listed: Repository, variant: str | None) -> Sequence[str]:
    ggufs = [name for name in listed.files if name.endswith(".gguf")]
    harmless = {name for name in listed.files if _is_harmless(name)}
    if variant is not None or (ggufs and not any(name.endswith(".safetensors") for name in harmless)):
        chosen = one_gguf_model(ggufs, variant)
        if chosen is None:
            raise ArtifactError(
                f"{listed.repo} has no single GGUF file{f' for {variant}' if variant else ''}: {', '.join(sorted(ggufs)[:12]) or 'none'}",
                reason="ambiguous_model", param="model", fix=f"Pick one by its quantization, as in {listed.repo}:Q4_K_M.",
            )  # fmt: skip
        return _weights_last({*chosen, *({_READ_FIRST} & listed.files.keys())})
    return _weights_last(harmless)


def _is_harmless(name: str) -> bool:
    return name.endswith(_KINDS) and not name.startswith(_OTHER_RUNTIMES) and not any(part.startswith(".") for part in name.split("/"))


def _weights_last(names: Collection[str]) -> list[str]:
    return sorted(names, key=lambda name: (name.endswith((".safetensors", ".gguf")), name))


def _place(folder: Path, variant: str | None) -> Path:
    ggufs = [entry.name for entry in folder.iterdir() if entry.name.endswith(".gguf")]
    if variant is None and (folder / "config.json").exists():
        return folder
    chosen = one_gguf_model(ggufs, variant)
    return folder / chosen[0] if chosen else folder


def _noted(note: Path) -> Sequence[str] | None:
    try:
        names: Mapping[str, Sequence[str]] | Sequence[str] = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return None
    return [str(name) for name in names] if isinstance(names, list) and names else None


def _write_note(note: Path, names: Sequence[str]) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    fresh = note.with_name(f"{note.name}.{os.getpid()}.new")
    fresh.write_text(json.dumps(list(names)))
    fresh.replace(note)
