"""What the baseline says to the same texts and questions: found in the cache, or asked once."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from headway.artifacts.cache_folders import headway_cache
from headway.errors import ConfigError
from headway.evaluation.baseline_cache import BaselineCache, record_key
from headway.evaluation.measuring import OnTokens, record_logprobs
from headway.evaluation.record import Record, RecordWriter
from headway.evaluation.scoring import Progress, ScoringRequest
from headway.evaluation.subject import Subject, load
from headway.evaluation.token_scores import Head
from headway.evaluation.work import Work
from headway.models.causal_lm import CausalLM

_log = logging.getLogger(__name__)


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
    """Without `keeping`, and where nothing can be written, records live as long as the block."""
    folder = headway_cache() / "evaluations"
    if keeping:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            _log.warning("evaluations are not kept: %s", error)
            keeping = False
    with ExitStack() as held:
        if keeping:
            cache = BaselineCache(folder)
        else:
            cache = BaselineCache(Path(held.enter_context(TemporaryDirectory(prefix="headway-eval-"))), most=0)
        held.callback(cache.sweep)
        yield cache


def baseline_of(subject: Subject, work: Work, cache: BaselineCache, progress: Progress, done: OnTokens, *, hidden: bool) -> Baseline:
    """`hidden`: the states of the texts are kept, so that distributions can be compared. Raises what loading raises, NotNumbersError, ConfigError
    (`cache_not_writable`)."""
    sets = [(requests, hidden and number < len(work.texts)) for number, requests in enumerate(work.request_sets)]
    keys = [_key(cache, subject, requests, with_states) for requests, with_states in sets]
    model: CausalLM | None = None
    records: list[Record] = []
    for (requests, with_states), key in zip(sets, keys, strict=True):
        record = cache.find(key, requests)
        if record is None:
            model = model or load(subject, progress)
            record = cache.keep(key, _recorded(model, subject, requests, cache.new_place(key), done, hidden=with_states))
        else:
            done(sum(len(request.tokens) for request in requests))
        records.append(record)
    texts = len(work.texts)
    return Baseline(subject, work, tuple(records[:texts]), tuple(records[texts:]), kept=model is None)


def _recorded(
    model: CausalLM, subject: Subject, requests: Sequence[ScoringRequest], place: Path, done: OnTokens, *, hidden: bool
) -> Record:
    shutil.rmtree(place, ignore_errors=True)
    try:
        return record_logprobs(model, Head(model.head, subject.known), requests, RecordWriter(place, model.dtype), done, hidden=hidden)
    except OSError as error:
        raise ConfigError(
            f"what {subject.reference} says cannot be written to {place.parent}: {error.strerror or error}", reason="cache_not_writable", param="cache",
            fix="Make room there, or name another place with HEADWAY_CACHE (with --no-cache: TMPDIR).",
        ) from error  # fmt: skip


def _key(cache: BaselineCache, subject: Subject, requests: Sequence[ScoringRequest], hidden: bool) -> str:
    return record_key(subject, requests, cache.folder / "digests", hidden=hidden)
