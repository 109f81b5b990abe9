"""The texts that perplexity is measured on: files, or the one that comes with Headway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from headway.errors import ConfigError

MOST_BYTES: Final = 16 << 20
PACKAGED: Final = "headway"


@dataclass(frozen=True, slots=True)
class Text:
    """`name` for reports."""

    name: str
    content: str


def packaged_text() -> Text:
    """English prose, talk, instructions, program code and tables, written for this purpose; nobody trained or calibrated on it."""
    content = resources.files("headway.evaluation").joinpath("packaged", "text.txt").read_text(encoding="utf-8")
    return Text(PACKAGED, content)


def read_texts(paths: Sequence[Path]) -> list[Text]:
    """Each file is one text. Raises ConfigError (`evaluation_text`) for files that are missing, empty, no UTF-8 or too large."""
    return [Text(path.name, _content(path)) for path in paths]


def _content(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _wrong(path, f"has {size} bytes, the limit is {MOST_BYTES}", "Cut it: a few hundred kilobytes say all there is to say.")
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror or error}", "Check path and permissions.") from None
    except UnicodeDecodeError as error:
        raise _wrong(path, f"is no UTF-8 text (byte {error.start})", "Convert it to UTF-8.") from None
    if not content.strip():
        raise _wrong(path, "is empty", "Give a text of some thousand words.")
    return content


def _wrong(path: Path, what: str, fix: str) -> ConfigError:
    return ConfigError(f"the text {path} {what}", reason="evaluation_text", param="text", fix=fix)
