"""Asks llama.cpp (PyPI `xllamacpp`, in process) the cases of `gguf_cases.py` about the files that `write_gguf_fixtures` writes.

    python -m tests.runtime.readers.write_gguf_fixtures FOLDER
    pip install xllamacpp==2026.10.11549 && python record_xllamacpp.py FOLDER > recorded/xllamacpp.json
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import xllamacpp
from gguf_cases import CASES, TEMPLATES


def answers(path: Path) -> list[Any]:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel, params.warmup = 8192, 4096, 4096, 1, False
    params.cpuparams.n_threads = 1
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED  # it rounds keys and values to 16 bits
    server = xllamacpp.Server(params)
    found = []
    for state, question in CASES:
        answer = server.handle_systemone({"state": state, "questions": {"question": question}})
        found.append((json.loads(answer) if isinstance(answer, str | bytes) else answer)["answers"]["question"])
    return found


def main(folder: Path) -> None:
    recorded: dict[str, Any] = {"made_with": {"xllamacpp": xllamacpp.__version__}, "fixture": {}, "answers": {}}
    for kind in (*TEMPLATES, "laya"):
        path = folder / f"{kind}.gguf"
        recorded["fixture"][kind] = hashlib.sha256(path.read_bytes()).hexdigest()
        recorded["answers"][kind] = answers(path)
    json.dump(recorded, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
