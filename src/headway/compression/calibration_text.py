"""Texts for calibration: those that come with Headway, or a file; and windows of tokens from them, all of one length."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import torch

from headway.artifacts.tokenizer import Tokenizer
from headway.errors import ConfigError, RequestError

MOST_BYTES: Final = 256 << 20
LEAST_WINDOWS: Final = 8
_FIX: Final = "Give a .txt file (texts with empty lines between them, or a text on each line) or a .jsonl file with \"text\" or \"messages\" in each line."


@dataclass(frozen=True, slots=True)
class Windows:
    """`tokens` int64 [samples, length]; `digest` of them; `notes` for the person who asked for more."""

    tokens: torch.Tensor
    digest: str
    notes: tuple[str, ...]


def packaged_texts() -> list[str]:
    """The texts that come with Headway: several domains, languages and programming languages, written for it (Apache-2.0)."""
    folder = files("headway.compression").joinpath("texts")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".txt"))
    return [text.strip("\n") for name in names for text in folder.joinpath(name).read_text(encoding="utf-8").split("\n\n\n")]


def texts_of_file(path: Path, tokenizer: Tokenizer) -> list[str]:
    """Raises ConfigError (`calibration_file`)."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _bad(path, f"it has {size} bytes, the limit is {MOST_BYTES}")
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found = list(_of_lines(path, content, tokenizer)) if path.suffix in (".jsonl", ".ndjson") else _passages(content)
    if not found:
        raise _bad(path, "there is no text in it")
    return found


def windows(texts: list[str], tokenizer: Tokenizer, samples: int, length: int, source: str) -> Windows:
    """`samples` windows of `length` tokens: all texts one after the other, each begun as the tokenizer begins a text, cut and then
    taken at even distances, so that every part of the texts is in them.

    Raises ConfigError (`calibration_too_small`) below LEAST_WINDOWS windows.
    """
    ids: list[int] = []
    ends = tokenizer.eos_ids[:1]
    for text in texts:
        ids += tokenizer.encode(text)
        ids += ends
    notes = []
    there = len(ids) // length
    if there < LEAST_WINDOWS:
        raise ConfigError(
            f"{source} has {len(ids)} tokens, which make {there} samples of {length}; at least {LEAST_WINDOWS} are needed, and 128 are usual",
            reason="calibration_too_small", param="calibration", fix="Give more text, or a smaller --max-length.",
        )  # fmt: skip
    if there < samples:
        notes.append(f"{source} makes {there} samples of {length} tokens, {samples} were asked for: all of it is used")
    taken = min(there, samples)
    chosen = [window * there // taken for window in range(taken)]
    tokens = torch.tensor(ids[: there * length]).view(there, length)[chosen]
    return Windows(tokens, hashlib.sha256(tokens.numpy().tobytes()).hexdigest(), tuple(notes))


def _passages(content: str) -> list[str]:
    """Texts between empty lines; every line a text where there are no empty lines."""
    parts = content.replace("\r\n", "\n").split("\n\n")
    if len(parts) == 1:
        parts = content.splitlines()
    return [part.strip("\n") for part in parts if part.strip()]


def _of_lines(path: Path, content: str, tokenizer: Tokenizer) -> Iterator[str]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise _bad(path, f"line {number} is not JSON") from None
        read = next((read for field, read in _FIELDS.items() if isinstance(entry, dict) and field in entry), None)
        if read is None:
            raise _bad(path, f"line {number} has neither \"text\" nor \"messages\"")
        try:
            yield read(entry, tokenizer)
        except (RequestError, TypeError, KeyError) as error:
            why = error.message if isinstance(error, RequestError) else "its fields are not what they should be"
            raise _bad(path, f"line {number}: {why}") from None


def _text(entry: dict[str, Any], tokenizer: Tokenizer) -> str:
    if not isinstance(entry["text"], str):
        raise TypeError
    return entry["text"]


def _conversation(entry: dict[str, Any], tokenizer: Tokenizer) -> str:
    if not isinstance(entry["messages"], list) or not all(isinstance(message, dict) for message in entry["messages"]):
        raise TypeError
    return tokenizer.render_chat(entry["messages"], add_generation_prompt=False)


_FIELDS: Final[dict[str, Callable[[dict[str, Any], Tokenizer], str]]] = {"messages": _conversation, "text": _text}


def _bad(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"--calibration {path}: {problem}", reason="calibration_file", param="calibration", fix=_FIX)
