"""Tiny models compressed with texts of their own tokens."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from headway.artifacts.inspect import inspect
from headway.compression.method import METHODS
from headway.compression.report import Report
from headway.compression.request import QuantizeRequest
from headway.compression.run import quantize

SAMPLES, LENGTH = 16, 32


def write_texts(path: Path, *, texts: int = 40) -> Path:
    """Random characters of the byte tokenizer, whose ids are those of `tests.models.runs.tokens`."""
    rng = random.Random(7)
    path.write_text("\n\n".join("".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789.,") for _ in range(80)) for _ in range(texts)))
    return path


def compressed(source: Path | str, method: str, output: Path, **more: Any) -> Report:
    """`more` are fields of QuantizeRequest."""
    texts = more.pop("calibration", None) or write_texts(output.parent / "texts.txt")
    settings = {"samples": SAMPLES, "length": LENGTH, **more}
    return quantize(inspect(str(source)), QuantizeRequest(METHODS[method], output, texts, **settings))
