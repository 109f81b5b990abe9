"""Write the alias into an environment and take it away again: exactly the files of its RECORD, nothing else."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from headway.errors import ConfigError
from headway.shim.files import INSTALLER, METADATA_FOLDER, RECORD, fingerprint, package_files, program, record
from headway.shim.version import ALIAS_VERSION


@dataclass(frozen=True, slots=True)
class Place:
    """An environment: where its packages and its programs lie, and its interpreter."""

    packages: Path
    programs: Path
    python: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """`action`: installed, already installed, removed or nothing to remove."""

    action: str
    version: str
    files: tuple[Path, ...]


def this_environment() -> Place:
    return Place(Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("scripts")), sys.executable)


def install(place: Place) -> Outcome:
    """Write the alias. An older one of Headway is replaced.

    Raises ConfigError when a real vLLM is there (reason `vllm_installed`) or a folder cannot be written (`not_writable`).
    """
    _refuse_real_vllm(place)
    files = _files(place)
    found = _recorded(place)
    if found == set(files) and all(_content(path) == text.encode() for path, text in files.items()):
        return Outcome("already installed", ALIAS_VERSION, tuple(files))
    for folder in (place.packages, place.programs):
        _require_writable(folder)
    if found:
        remove(place)
    written: list[Path] = []
    try:
        for path, text in files.items():
            written.append(path)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (place.programs / "vllm").chmod(0o755)
    except OSError as error:
        _delete(written)
        raise ConfigError(f"The alias could not be written to {error.filename}: {error.strerror}", reason="not_writable") from error
    return Outcome("installed", ALIAS_VERSION, tuple(files))


def remove(place: Place) -> Outcome:
    """Delete what `install` wrote. Raises ConfigError (`alias_changed`) for files that somebody has changed since."""
    metadata = _metadata_folder(place)
    if metadata is None:
        return Outcome("nothing to remove", ALIAS_VERSION, ())
    lines = [line.rsplit(",", 2) for line in (metadata / "RECORD").read_text(encoding="utf-8").splitlines()]
    recorded = {_absolute(place, path): digest for path, digest, _ in lines}
    changed = [p for p, digest in recorded.items() if digest and p.exists() and fingerprint(p.read_bytes()) != digest]
    if changed:
        raise ConfigError(
            f"{', '.join(map(str, changed))} differ(s) from what `headway shim install` wrote; nothing was removed",
            reason="alias_changed", fix="Delete by hand what you no longer need.",
        )  # fmt: skip
    for folder in {path.parent for path in recorded if path.exists()}:
        _require_writable(folder)
    _delete(list(recorded))
    return Outcome("removed", metadata.name.removeprefix("vllm-").removesuffix(".dist-info"), tuple(recorded))


def _files(place: Place) -> dict[Path, str]:
    """All files with their contents, the RECORD last."""
    relative = os.path.relpath(place.programs / "vllm", place.packages)
    listed = {**package_files(), relative: program(place.python)}
    return {_absolute(place, path): text for path, text in {**listed, RECORD: record(listed)}.items()}


def _absolute(place: Place, path: str) -> Path:
    return Path(os.path.normpath(place.packages / path))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _metadata_folder(place: Place) -> Path | None:
    """The metadata of an alias of any version; None when there is none."""
    for folder in place.packages.glob("vllm-*.dist-info"):
        if (_content(folder / "INSTALLER") or b"").strip() == INSTALLER.encode() and (folder / "RECORD").is_file():
            return folder
    return None


def _recorded(place: Place) -> set[Path]:
    folder = _metadata_folder(place)
    if folder is None:
        return set()
    lines = (folder / "RECORD").read_text(encoding="utf-8").splitlines()
    return {_absolute(place, line.rsplit(",", 2)[0]) for line in lines}


def _refuse_real_vllm(place: Place) -> None:
    """Anything called vllm that the alias's RECORD does not name is somebody else's."""
    ours = _recorded(place)
    theirs = [p for p in (place.packages / "vllm" / "__init__.py", place.programs / "vllm") if p.exists() and p not in ours]
    theirs += [p for p in place.packages.glob("vllm-*-info") if p / "RECORD" not in ours and p.name != METADATA_FOLDER]
    theirs += place.packages.glob("__editable__.vllm-*")
    for entry in sys.path:
        beside = Path(entry or ".") / "vllm" / "__init__.py"
        if beside.is_file() and beside.resolve() not in {p.resolve() for p in ours} and beside not in theirs:
            theirs.append(beside)
    if theirs:
        raise ConfigError(
            f"A vllm that is not Headway's alias is here already: {theirs[0]}. The alias would hide it", reason="vllm_installed",
            fix="Use `headway` under its own name, or make a virtual environment without vLLM.",
        )  # fmt: skip


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"The folder {folder} of this environment ({sys.prefix}) cannot be written", reason="not_writable",
            fix="Run it as the owner of the environment, or install Headway into a virtual environment of your own.",
        )  # fmt: skip


def _delete(paths: list[Path]) -> None:
    """The files, the byte code made of them, and folders that are empty then."""
    for path in paths:
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc") if path.suffix == ".py" else ():
            compiled.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    for folder in {p.parent for p in paths if p.parent.name == "vllm" or p.parent.name.endswith(".dist-info")}:
        for empty in (folder / "__pycache__", folder):
            with contextlib.suppress(OSError):
                empty.rmdir()
