"""What stands in for the engine until it can serve."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headway.engine.config import EngineConfig
from headway.engine.request_terms import ORDINARY
from headway.engine.sampling_params import SamplingParams
from headway.errors import LoadingError
from headway.server.engine_start import PendingEngine
from tests.server.scripted_engine import Status


def test_the_stage_is_that_of_the_engine_behind_but_never_ready() -> None:
    pending = PendingEngine(EngineConfig("m"))
    assert (pending.status.stage, pending.status.progress) == ("starting", 0.0)
    for behind, shown in ((Status("loading", 0.3), "loading"), (Status("ready"), "warming"), (Status("dead", 1.0, "why"), "dead")):
        pending.behind = SimpleNamespace(status=behind)  # type: ignore[assignment]
        assert pending.status.stage == shown
    assert pending.status.error == "why"


def test_everything_else_is_still_loading() -> None:
    pending = PendingEngine(EngineConfig("m"))
    for ask in (
        lambda: pending.tokenizer,
        lambda: pending.max_model_len,
        lambda: pending.vocab_size,
        lambda: pending.default_sampling,
        lambda: pending.generate([1], SamplingParams(), "r", ORDINARY),
    ):
        with pytest.raises(LoadingError):
            ask()
