"""Step records of a real core with a scripted model: they say what was computed, and nothing is written unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway import LLM, SamplingParams
from headway.bench.simulation.step_fit import read_step_records
from headway.engine.step_records import VARIABLE, StepRecorder, wanted_recorder
from headway.errors import ConfigError
from tests.engine.scripted_core import ScriptedCore, say
from tests.engine.tiny_folder import complete_tiny_model


def test_records_add_up_to_what_the_requests_took(tmp_path: Path) -> None:
    world = ScriptedCore(say("one two three four"), num_blocks=100, block_size=4, max_model_len=200)
    now = [0.0]

    def clock() -> float:
        now[0] += 0.001
        return now[0]

    world.core.recorder = StepRecorder(str(tmp_path / "steps"), clock=clock)
    world.add("a", "Hello there", max_tokens=5, ignore_eos=True)
    world.add("b", "Hi", max_tokens=3, ignore_eos=True)
    while world.core.has_work:
        now[0] += 1.0  # between two steps
        world.core.step()
    works, seconds = read_step_records(tmp_path / "steps")
    assert len(works) == world.core.steps == len(seconds) == 5
    prompts = len(world.core.tokenizer.encode("Hello there")) + len(world.core.tokenizer.encode("Hi"))
    assert sum(work.prefill_tokens for work in works) == prompts
    assert sum(work.sampled for work in works) == 5 + 3
    assert [work.decode_rows for work in works] == [0, 2, 2, 1, 1]
    assert works[0].prefill_chunks == 2
    assert seconds == pytest.approx([0.001, *[1.001] * 4]), "a step after another lasts from its end"


def test_a_step_after_a_pause_lasts_from_its_own_beginning(tmp_path: Path) -> None:
    world = ScriptedCore(say("one two three four"), num_blocks=100, block_size=4, max_model_len=200)
    now = [0.0]
    world.core.recorder = StepRecorder(str(tmp_path / "steps"), clock=lambda: now[0])
    for name in ("a", "b"):
        world.add(name, "Hello", max_tokens=1, ignore_eos=True)
        now[0] += 100.0
        world.core.step()
        world.core.recorder.begin()
        now[0] += 1.0
    (tmp_path / "empty").touch()
    assert max(float(text.split('"seconds": ')[1].split(",")[0]) for text in (tmp_path / "steps").read_text().splitlines()) == 0.0


def test_each_engine_has_a_file_of_its_own_and_none_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert wanted_recorder() is None
    monkeypatch.setenv(VARIABLE, str(tmp_path / "steps"))
    assert wanted_recorder() is not None
    assert wanted_recorder() is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["steps", "steps.2"]
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing" / "steps"))
    with pytest.raises(ConfigError, match="cannot be made"):
        wanted_recorder()


def test_an_engine_of_a_real_model_records_when_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "steps"))
    llm = LLM(str(complete_tiny_model("smollm", tmp_path).folder), dtype="float32", kv_cache_memory_bytes=2 << 20, max_model_len=64)
    before = len((tmp_path / "steps").read_text().splitlines())
    llm.generate([{"prompt_token_ids": [5, 6, 7]}, {"prompt_token_ids": [8, 9]}], SamplingParams(max_tokens=4, ignore_eos=True, temperature=0), use_tqdm=False)
    works, seconds = read_step_records(tmp_path / "steps")
    assert [(work.prefill_tokens, work.decode_rows, work.sampled) for work in works[before:]] == [(5, 0, 2), (0, 2, 2), (0, 2, 2), (0, 2, 2)]
    assert min(seconds) > 0
