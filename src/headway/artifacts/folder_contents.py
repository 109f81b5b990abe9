"""What a model folder holds beside weights: tokenizer files, a chat template, links to nothing, code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object_if_present

# First match wins; every file of the set must be there.
TOKENIZER_FILE_SETS: Final[tuple[tuple[str, ...], ...]] = (
    ("tokenizer.json",),
    ("tokenizer.model",),
    ("tokenizer.model.v3",),
    ("tekken.json",),
    ("spiece.model",),
    ("sentencepiece.bpe.model",),
    ("vocab.json", "merges.txt"),
    ("vocab.txt",),
)
TEMPLATE_FILES: Final = ("chat_template.jinja", "chat_template.json")
_CODE_SECTIONS: Final = ("config.json", "tokenizer_config.json")


def tokenizer_files(folder: Path) -> str | None:
    """The tokenizer of the folder by its file name ("tokenizer.json", "vocab.json"), or None."""
    for names in TOKENIZER_FILE_SETS:
        if all((folder / name).is_file() for name in names):
            return names[0]
    return None


def has_chat_template(folder: Path) -> bool:
    """True when a template file or the field `chat_template` of tokenizer_config.json is there."""
    if any((folder / name).is_file() for name in TEMPLATE_FILES):
        return True
    return bool(read_json_object_if_present(folder / "tokenizer_config.json").get("chat_template"))


def dangling_links(folder: Path) -> tuple[str, ...]:
    """Names in the folder that are links to nothing: the mark of a half-finished download."""
    return tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_symlink() and not entry.exists()))


def code_problems(sections: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One sentence for each configuration file that asks for Python code of the repository (`auto_map`)."""
    return [
        f"{name} asks for Python code of the model repository (auto_map); Headway never runs it and uses its own"
        " implementation of the architecture, if it has one"
        for name in _CODE_SECTIONS
        if sections.get(name, {}).get("auto_map")
    ]
