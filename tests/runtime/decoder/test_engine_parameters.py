"""`enable_shared_context` and `max_num_seqs` of a decoder, from the configuration to the tokens that are computed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.decisions.label_logits.model import LabelLogitsModel
from headway.runtime.decoder.trunk import DecoderTrunk
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.planned import begin, finish, submit
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.loading.loader import ModelLoader
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.plan import run_plan
from headway.runtime.plugins import PluginSet
from headway.runtime.selfcheck.golden import Strictness, golden_answers
from headway.runtime.selfcheck.golden_requests import GoldenRequest
from headway.runtime.served_model import Running, ServedModel
from headway.runtime.settings import WorkerSettings
from headway.wire.decision_body import read_decision_body

STATE = "A parcel was sent on Monday and has not arrived. " * 40
QUESTIONS = {f"q{i}": {"type": "noul", "instructions": f"Is it true that number {i} was late?"} for i in range(10)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m"
    path.mkdir()
    LabelLogitsFamily().write_fixture(path, "llama", 2)
    return path


@contextmanager
def _running(folder: Path, settings: WorkerSettings, **entry: Any) -> Iterator[Running]:
    device = DeviceThread()
    served = ServedModel(ModelEntry(str(folder), **entry), "m")

    def scheduler(_: ServedModel, model: Any, execution: Any, is_fault: Any) -> Scheduler:
        return Scheduler(model, execution, device)

    try:
        ModelLoader(PluginSet.installed(), settings, device, scheduler).load(served)
        assert served.running is not None
        yield served.running
    finally:
        device.close()


def _trunk(running: Running) -> DecoderTrunk:
    assert isinstance(running.model, LabelLogitsModel)
    return running.model._trunk


def _ask(running: Running) -> tuple[dict[str, Any], int, int, int]:
    """Answers, computed and shared tokens, forward passes."""
    counts = _trunk(running).counts
    before = (counts.computed_tokens, counts.shared_tokens, counts.forwards)

    async def ask() -> dict[str, Any]:
        planned = await begin(running.model.planners["decisions"](read_decision_body({"state": STATE, "questions": QUESTIONS})))
        submit(running.scheduler, [planned], time.perf_counter(), [None])
        answered: dict[str, Any] = await finish(running.scheduler, planned)
        return answered["answers"]

    answers = asyncio.run(ask())
    after = (counts.computed_tokens, counts.shared_tokens, counts.forwards)
    computed, shared, forwards = (b - a for a, b in zip(before, after, strict=True))
    return answers, computed, shared, forwards


def test_the_state_of_a_request_is_computed_once_and_answers_stay_the_same(folder: Path) -> None:
    with _running(folder, WorkerSettings(threads=1)) as running:
        assert running.settings.enable_shared_context
        together, computed, shared, forwards = _ask(running)
        assert _trunk(running).held_blocks == 0
    with _running(folder, WorkerSettings(threads=1, enable_shared_context=False)) as running:
        assert not running.settings.enable_shared_context
        alone, all_tokens, nothing, _ = _ask(running)
    assert (nothing, computed + shared, forwards) == (0, all_tokens, 1)
    assert computed < all_tokens / 4
    for name, answer in alone.items():
        assert together[name]["noul"] == pytest.approx(answer["noul"], abs=1e-4)


def test_the_self_check_computes_everything_twice(folder: Path) -> None:
    """Else the second of two runs would take over what the first computed, and differ in the last bits."""
    request = read_decision_body({"state": STATE, "questions": dict(list(QUESTIONS.items())[:2])})
    with _running(folder, WorkerSettings(threads=1)) as running:
        counts, model = _trunk(running).counts, running.model
        before = counts.computed_tokens
        golden_answers(model, [GoldenRequest("long", "decisions", request)], Strictness(1e-3))
        twice = counts.computed_tokens - before
        model.forget()
        run_plan(model, model.planners["decisions"](request))
        assert twice == 2 * (counts.computed_tokens - before - twice)


def test_few_rows_in_a_pass_still_find_what_the_passes_before_computed(folder: Path) -> None:
    with _running(folder, WorkerSettings(threads=1)) as running:
        whole, computed, _, _ = _ask(running)
    with _running(folder, WorkerSettings(threads=1, max_num_seqs=1), max_num_seqs=3) as running:
        assert running.settings.max_num_seqs == 3
        parts, in_parts, _, forwards = _ask(running)
    assert forwards == 4
    assert in_parts == computed
    for name, answer in whole.items():
        assert parts[name]["noul"] == pytest.approx(answer["noul"], abs=1e-4)


@pytest.mark.parametrize(
    ("worker", "entry", "shares"),
    [({}, False, False), ({"enable_shared_context": False}, True, True), ({"batch_invariant": True}, None, False)],
)  # fmt: skip
def test_the_entry_wins_over_the_worker_and_the_family_speaks_last(folder: Path, worker: dict[str, Any], entry: bool | None, shares: bool) -> None:
    with _running(folder, WorkerSettings(threads=1, **worker), enable_shared_context=entry) as running:
        assert running.settings.enable_shared_context is shares


def test_equal_bits_and_a_shared_context_exclude_each_other(folder: Path) -> None:
    with pytest.raises(ConfigError, match="exclude each other"), _running(
        folder, WorkerSettings(threads=1, batch_invariant=True, enable_shared_context=True)
    ):  # fmt: skip
        pass
