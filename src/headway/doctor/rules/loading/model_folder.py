"""What the context says about the model: its name, its files, and whether each is what it claims to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from headway.doctor.case import Case

Damage = Literal["pointer", "web page", "truncated", "empty", "not a model file"]

_POINTER_AT_MOST: Final = 1024  # bytes; a Git LFS pointer has about 130
_WEIGHTS: Final = (".safetensors", ".gguf", ".bin", ".pt", ".pth")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One member of `model.files`; `path` is its place in the context. Sizes in bytes, None when unknown."""

    name: str
    nbytes: int | None
    expected: int | None
    head: str
    path: str

    @property
    def is_weights(self) -> bool:
        return self.name.endswith(_WEIGHTS)

    @property
    def damage(self) -> Damage | None:
        """What the file is instead of a model file, None when nothing speaks against it."""
        head = self.head.lstrip().lower()
        if head.startswith("version http"):
            return "pointer"
        if head.startswith(("<!do", "<htm", "<?xm", "<hea")):
            return "web page"
        if self.nbytes == 0:
            return "empty"
        if self.expected is not None and self.nbytes is not None and self.nbytes < self.expected:
            return "truncated"
        if self.is_weights and self.nbytes is not None and self.nbytes < _POINTER_AT_MOST:
            return "pointer"
        return None


def model_files(case: Case) -> list[ModelFile]:
    files: list[ModelFile] = []
    for index, member in enumerate(case.context.items("model.files")):
        path = f"model.files.{index}"
        if isinstance(member, Mapping):
            expected = _whole(case, f"{path}.expected_bytes")
            files.append(
                ModelFile(
                    str(member.get("name", "")),
                    _whole(case, f"{path}.bytes"),
                    expected,
                    case.context.text(f"{path}.head"),
                    path,
                )
            )
        elif isinstance(member, str):
            files.append(ModelFile(member, None, None, "", path))
    return files


def file_named(case: Case, name: str) -> ModelFile | None:
    return next((file for file in model_files(case) if file.name.rsplit("/", 1)[-1] == name), None)


def model_place(case: Case) -> str:
    """Path or id of the model, "" when unknown."""
    return case.context.text("model.path") or case.context.text("model.id") or case.launch.model


def model_directory(case: Case) -> str:
    """The folder of the model's files on this machine, "" when it is not named."""
    place = case.context.text("model.path") or case.launch.model
    if not place.startswith(("/", "./", "~")):
        return ""
    return place.rsplit("/", 1)[0] if place.endswith(_WEIGHTS) else place


def hub_id(case: Case) -> str:
    """`owner/name`, "" when the model is known by a path only."""
    for name in (case.context.text("model.id"), case.launch.model):
        if re.fullmatch(r"[\w.\-]+/[\w.\-]+", name):
            return name
    return ""


def _whole(case: Case, path: str) -> int | None:
    number = case.context.number(path)
    return None if number is None else int(number)
