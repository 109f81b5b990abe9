"""A model entry -> its package on this machine: local folders and files, short names, built-in names, hub repositories."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headway.artifacts.cache_folders import headway_cache, hub_cache
from headway.artifacts.hub_package import hub_package
from headway.artifacts.licence import licence_of_folder
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.reference import parse_reference
from headway.artifacts.registry import registry
from headway.artifacts.registry_fetch import fetch
from headway.errors import ArtifactError, PackageError
from headway.runtime.loading.builtins import Builtin, builtin_named
from headway.runtime.loading.licence_policy import check_licence
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.package import Package

COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_PREFIX: Final = re.compile(r"[0-9a-f]{7,39}")


@dataclass(frozen=True, slots=True)
class Source:
    """`recorded` are the digests that a table of ours has for files of the package."""

    package: Package
    recorded: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stores:
    """Where downloads go (None: the usual caches) and which restricted licences were accepted."""

    cache_dir: str | None = None
    accepted: Collection[str] = ()


def obtain(entry: ModelEntry, stores: Stores, progress: ProgressCallback | None = None) -> Source:
    """The files of `entry.model`, downloaded if they are not there.

    Raises ArtifactError: `revision_required`, `revision_refused`, `licence_not_accepted`, `linked_folder`, and those of
    references and downloads.
    """
    name, revision = split_reference(entry)
    path = Path(name).expanduser()
    if path.exists() or path.is_symlink():
        return _local(path, revision)
    if name in registry():
        return _registered(name, revision, stores, progress)
    repo, _, variant = name.partition(":")
    builtin = builtin_named(repo)
    if builtin is None:
        parsed = parse_reference(name)  # raises for what is no hub name at all
        repo = parsed.name
    else:
        repo = builtin.repo
    commit = _commit(repo, revision, builtin)
    folder = hub_package(
        repo, commit, variant or None, hub_cache(stores.cache_dir),
        consent=lambda licence: check_licence(licence, stores.accepted), progress=progress,
    )  # fmt: skip
    licence = licence_of_folder(folder if folder.is_dir() else folder.parent)
    check_licence(licence, stores.accepted)
    return Source(Package(entry.model, folder, repo, commit, licence))


def split_reference(entry: ModelEntry) -> tuple[str, str | None]:
    """`MODEL@REV` and a revision of its own -> (model, revision). Raises ArtifactError (`revision_conflict`)."""
    if Path(entry.model).expanduser().exists():
        return entry.model, entry.revision
    name, at, inline = entry.model.partition("@")
    if not at:
        return entry.model, entry.revision
    if Path(name).expanduser().exists():
        raise ArtifactError(
            f"{entry.model}: {name} is a local path, which has no revisions", reason="revision_refused", param="revision", fix="Leave @... out."
        )
    if entry.revision is not None and entry.revision != inline:
        raise ArtifactError(
            f"{name} is asked for at {inline} and at {entry.revision}", reason="revision_conflict", param="revision", fix="Give one of them."
        )
    return name, inline


def default_name(entry: ModelEntry) -> str:
    """What a model is called that has no name of its own: the repository, the short name, the folder or the file."""
    path = Path(entry.model).expanduser()
    if path.exists():
        return path.resolve().name if path.is_dir() else path.stem
    name = entry.model.partition("@")[0].partition(":")[0]
    try:
        builtin = builtin_named(name)
    except ArtifactError:  # ambiguous: loading says so
        return name
    return builtin.repo if builtin is not None else name


def _local(path: Path, revision: str | None) -> Source:
    if path.is_dir() and path.is_symlink():
        raise PackageError(f"{path} is a link to a folder, which can change under us", reason="linked_folder", param="model", fix="Name the folder itself.")
    if revision is not None:
        raise PackageError(f"{path} is a local path, which has no revision {revision[:60]!r}", reason="revision_refused", param="revision", fix="Leave the revision out.")
    if not path.exists():
        raise PackageError(f"{path} is a link to nothing", reason="missing_file", param="model")
    licence = licence_of_folder(path if path.is_dir() else path.parent)
    return Source(Package(str(path), path, licence=licence))


def _registered(name: str, revision: str | None, stores: Stores, progress: ProgressCallback | None) -> Source:
    model = registry()[name]
    if revision not in (None, model.revision):
        raise PackageError(
            f"{name} comes from the package registry in one version only, {model.revision}; found revision {revision!r:.60}",
            reason="revision_refused", param="revision", fix="Leave the revision out.",
        )  # fmt: skip
    if model.licence_key is not None and model.licence_key not in stores.accepted:
        raise _unaccepted(name, model.licence, model.licence_key, model.licence_terms)
    path = fetch(model, headway_cache(stores.cache_dir), progress=progress)
    recorded = {file: wanted.sha256 for file, wanted in model.files.items()}
    return Source(Package(name, path, revision=model.revision, licence=model.licence), recorded)


def _unaccepted(name: str, licence: str, key: str, terms: str | None) -> ArtifactError:
    return PackageError(
        f"a licence must be accepted: {name} is under {licence}{f' ({terms})' if terms else ''}",
        reason="licence_not_accepted", param="accept_licence", fix=f"Add `--accept-licence {key}` if you accept it.",
    )  # fmt: skip


def _commit(repo: str, revision: str | None, builtin: Builtin | None) -> str:
    if builtin is not None and (revision is None or (_PREFIX.fullmatch(revision) and builtin.revision.startswith(revision))):
        return builtin.revision
    if revision is not None and COMMIT.fullmatch(revision):
        return revision
    found = "none was given" if revision is None else f"found {revision!r:.60}"
    raise PackageError(
        f"a revision is required: {repo} is no built-in model, so its commit must be named in 40 hex digits; {found}"
        if builtin is None
        else f"a revision is required in 40 hex digits, or as a prefix of {builtin.revision}; {found}",
        reason="revision_required", param="revision", fix=f"See https://huggingface.co/{repo}/commits for them.",
    )  # fmt: skip


