"""The demonstration heads: trained, measured on templates that they have not seen, and written as one package."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from headway.artifacts.progress import ProgressCallback
from headway.artifacts.registry import registry
from headway.artifacts.registry_fetch import fetch
from headway.training.head_fit import FittedHead, fit_head
from headway.training.head_package import write_package
from headway.training.sentence_encoder import SentenceEncoder
from headway.training.texts import TASKS, examples, labels_of, subject_of

MODEL: Final = "all-minilm-l6-v2"
FOLDER: Final = "demonstration-heads"
RESULTS: Final = "results.json"
_README: Final = """# Demonstration heads

Seven small classifiers on top of all-minilm-l6-v2 (Apache 2.0), trained on texts from a few templates that come with Headway. They show how
signals are answered by a model. They know no language but English, were measured on nothing but texts of the same makers, and are not fit to
guard anything.

| head | decides | right, on texts from unseen templates | commonest label |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Result:
    """`accuracy` on `count` texts from unseen templates, beside that of always saying the commonest label."""

    task: str
    about: str
    labels: tuple[str, ...]
    trained_on: int
    count: int
    accuracy: float
    majority: float


def demonstration_heads(
    cache: Path, tasks: Sequence[str] = TASKS, *, progress: Callable[[Result], None] = lambda result: None, downloading: ProgressCallback | None = None
) -> Path:
    """Train and write `cache`/demonstration-heads; what is there is replaced at the end, at once, so that it is never half.

    Raises ArtifactError when the encoder cannot be had.
    """
    source = fetch(registry()[MODEL], cache, progress=downloading)
    encoder = SentenceEncoder(source)
    place = cache / FOLDER
    building = Path(tempfile.mkdtemp(prefix=f".{FOLDER}-", dir=cache))
    try:
        heads, results = {}, []
        for task in tasks:
            heads[task], result = _trained(task, encoder)
            results.append(result)
            progress(result)
        write_package(building, source, heads)
        (building / RESULTS).write_text(json.dumps([asdict(result) for result in results], indent=1), "utf-8")
        (building / "README.md").write_text(_README + "".join(map(_row, results)), "utf-8")
        _exchange(building, place)
        return place
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _trained(task: str, encoder: SentenceEncoder) -> tuple[FittedHead, Result]:
    train, held_out = examples(task, "train"), examples(task, "held_out")
    labels = labels_of(task)
    states = encoder.states([example.text for example in train])
    head = fit_head(states, [example.label for example in train], [example.template for example in train], labels)
    accuracy = _accuracy(head, encoder, [example.text for example in held_out], [example.label for example in held_out])
    majority = max(Counter(example.label for example in held_out).values()) / len(held_out)
    return head, Result(task, subject_of(task), labels, len(train), len(held_out), accuracy, majority)


def _accuracy(head: FittedHead, encoder: SentenceEncoder, texts: Sequence[str], labels: Sequence[str]) -> float:
    chosen = head.logits(encoder.states(texts)).argmax(axis=1)
    return float(np.mean([head.labels[n] == label for n, label in zip(chosen, labels, strict=True)]))


def _row(result: Result) -> str:
    return f"| `{result.task}` | {result.about} | {result.accuracy:.1%} of {result.count} | {result.majority:.1%} |\n"


def _exchange(built: Path, place: Path) -> None:
    """Two renames; a worker that has the old files open keeps them."""
    old = built.with_name(built.name + "-old")
    if place.exists():
        place.rename(old)
    built.chmod(0o755)  # mkdtemp makes folders that others cannot read
    built.rename(place)
    shutil.rmtree(old, ignore_errors=True)
