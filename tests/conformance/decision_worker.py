"""A worker process that serves two small decision models: `llm` (label logits) and `static` (sparrow), with random weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.runtime.decisions.label_logits.fixture import write_language_model
from headway.runtime.readers.sparrow.fixture import write_sparrow
from tests.runtime.worker_process import WorkerProcess, worker_process

MODELS = ("llm", "static")
KEY = "sk-decisions"


@contextmanager
def decision_worker(folder: Path, *flags: str) -> Iterator[WorkerProcess]:
    if not (folder / "llm").exists():
        write_language_model(folder / "llm", "llama", 1)
        write_sparrow(folder / "static", "words", 1)
    with worker_process(folder, str(folder / "llm"), str(folder / "static"), *flags) as worker:
        worker.until_status("ready")
        yield worker
