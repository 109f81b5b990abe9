"""What the baseline says to the same texts and questions: found in the cache, or asked once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from headway.artifacts.cache_folders import headway_cache
from headway.evaluation.baseline_cache import BaselineCache, record_key
from headway.evaluation.measuring import OnTokens, record_logprobs
from headway.evaluation.record import Record, RecordWriter
from headway.evaluation.scoring import Progress, ScoringRequest
from headway.evaluation.subject import Subject, load
from headway.evaluation.token_scores import Head
from headway.evaluation.work import Work
from headway.models.causal_lm import CausalLM


@dataclass(frozen=True, slots=True)
class Baseline:
    """Records of the texts and of the tasks, in the order of its work. `kept` tells that the model did not have to be run."""

    subject: Subject
    work: Work
    texts: tuple[Record, ...]
    tasks: tuple[Record, ...]
    kept: bool


@contextmanager
def evaluation_cache(keeping: bool) -> Iterator[BaselineCache]:
    """Without `keeping` records live as long as the block."""
    with ExitStack() as held:
        if keeping:
            folder = headway_cache() / "evaluations"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            cache = BaselineCache(folder)
        else:
            cache = BaselineCache(Path(held.enter_context(TemporaryDirectory(prefix="headway-eval-"))), most=0)
        held.callback(cache.sweep)
        yield cache


def baseline_of(subject: Subject, work: Work, cache: BaselineCache, progress: Progress, done: OnTokens, *, hidden: bool) -> Baseline:
    """`hidden`: the states of the texts are kept, so that distributions can be compared. Raises what loading raises, NotNumbersError."""
    sets = [(requests, hidden and number < len(work.texts)) for number, requests in enumerate(work.request_sets)]
    keys = [_key(cache, subject, requests, with_states) for requests, with_states in sets]
    model: CausalLM | None = None
    records: list[Record] = []
    for (requests, with_states), key in zip(sets, keys, strict=True):
        record = cache.find(key, requests)
        if record is None:
            model = model or load(subject, progress)
            place = cache.new_place(key)
            shutil.rmtree(place, ignore_errors=True)
            writer = RecordWriter(place, model.dtype)
            record = cache.keep(key, record_logprobs(model, Head(model.head, subject.known), requests, writer, done, hidden=with_states))
        else:
            done(sum(len(request.tokens) for request in requests))
        records.append(record)
    texts = len(work.texts)
    return Baseline(subject, work, tuple(records[:texts]), tuple(records[texts:]), kept=model is None)


def _key(cache: BaselineCache, subject: Subject, requests: Sequence[ScoringRequest], hidden: bool) -> str:
    return record_key(subject, requests, cache.folder / "digests", hidden=hidden)
