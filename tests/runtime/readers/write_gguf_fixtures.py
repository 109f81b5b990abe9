"""The GGUF files that llama.cpp was asked about, the same every time: `python -m tests.runtime.readers.write_gguf_fixtures FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from headway.runtime.decisions.label_logits.fixture import write_language_model
from headway.runtime.readers.laya.family import LayaFamily
from tests.runtime.readers.gguf_cases import MARKER_TEMPLATE, TEMPERATURES, TEMPLATES
from tests.runtime.readers.tiny_gguf import write_decision_gguf, write_marker_gguf

SEED = 21


def write_all(folder: Path) -> None:
    write_language_model(folder / "model", "qwen3", SEED)
    for kind, template in TEMPLATES.items():
        write_decision_gguf(folder / "model", folder / f"{kind}.gguf", kind, template, TEMPERATURES[kind])
    LayaFamily().write_fixture(folder / "laya", "laya", SEED)
    write_marker_gguf(folder / "laya", folder / "laya.gguf", MARKER_TEMPLATE)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
