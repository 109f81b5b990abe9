"""The models that come from the Python package registry; the table is `registry.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

Layout = Literal["file", "parts", "folder", "archive"]


@dataclass(frozen=True, slots=True)
class RegistryPackage:
    """One wheel. `member` is a file of it, or a folder when it ends in "/"."""

    name: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class RegistryFile:
    """What a file must be."""

    nbytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class RegistryModel:
    """One entry.

    layout "file": the member is the file; "parts": the files of all members, concatenated in order; "folder": the
    member is a folder of files; "archive": the member is a ZIP archive of files. `licence_key` is not None when the
    licence must be accepted by that word.
    """

    name: str
    about: str
    licence: str
    licence_key: str | None
    licence_terms: str | None
    layout: Layout
    packages: tuple[RegistryPackage, ...]
    files: Mapping[str, RegistryFile]

    @property
    def nbytes(self) -> int:
        return sum(file.nbytes for file in self.files.values())

    @property
    def revision(self) -> str:
        return "+".join(package.requirement for package in self.packages)

    @property
    def is_single_file(self) -> bool:
        return self.layout in ("file", "parts")


@cache
def registry() -> Mapping[str, RegistryModel]:
    """Short name -> entry, in the order of the table."""
    table = json.loads(files("headway.artifacts").joinpath("registry.json").read_text("utf-8"))
    return {name: _entry(name, fields) for name, fields in table.items()}


def _entry(name: str, fields: Mapping[str, Any]) -> RegistryModel:
    acceptance = fields["acceptance"] or {}
    return RegistryModel(
        name=name,
        about=fields["about"],
        licence=fields["licence"],
        licence_key=acceptance.get("key"),
        licence_terms=acceptance.get("terms"),
        layout=cast(Layout, fields["layout"]),
        packages=tuple(RegistryPackage(**package) for package in fields["packages"]),
        files={path: RegistryFile(file["bytes"], file["sha256"]) for path, file in fields["files"].items()},
    )
