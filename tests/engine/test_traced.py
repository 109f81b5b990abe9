"""Traces of an engine inside a program: LLM, which nobody shuts down, sends them when the program ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.traced import traced
from tests.e2e.tiny_model import tiny_model
from tests.telemetry.otlp_collector import attributes, grpc_collector

CODE = """
import sys
from headway import LLM, SamplingParams
llm = LLM(sys.argv[1], max_model_len=64, otlp_traces_endpoint=sys.argv[2])
llm.generate(["a", "b"], SamplingParams(max_tokens=3, ignore_eos=True), use_tqdm=False)
"""


def test_without_an_endpoint_nothing_is_added() -> None:
    observers = Observers()
    assert traced(EngineConfig("m"), observers) is observers


@pytest.mark.timeout(60)
def test_llm_sends_its_spans_at_the_end_of_the_program(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    with grpc_collector() as collector:
        done = subprocess.run([sys.executable, "-c", CODE, str(model), collector.endpoint], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        counts = [attributes(span)["gen_ai.usage.completion_tokens"] for span in collector.wait(2)]
    assert counts == [3, 3]
