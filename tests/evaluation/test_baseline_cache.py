"""A baseline is asked once, and again when anything that its answers follow from has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.errors import ConfigError
from headway.evaluation import baseline, measurement
from headway.evaluation.baseline_cache import BaselineCache
from headway.evaluation.evaluate import evaluate
from headway.evaluation.evaluation import Evaluation
from headway.evaluation.record import RecordWriter, read_record
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.scoring import ScoringRequest
from headway.evaluation.task_file import packaged_task
from headway.evaluation.texts import Text
from tests.evaluation.trained_model import copy_folder, text


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Baselines that were loaded."""
    names: list[str] = []
    real = baseline.load

    def load(subject: Any, progress: Any) -> Any:
        names.append(subject.reference)
        return real(subject, progress)

    monkeypatch.setattr(baseline, "load", load)
    return names


def run(model: Path, against: Path, *, content: str = text().content[:1500], **more: Any) -> Evaluation:
    settings: dict[str, Any] = {"dtype": "float32", "max_length": 96, "limit": 3} | more
    return evaluate(str(model), EvaluationRequest((Text("t", content),), (packaged_task(),), str(against), **settings))


def test_it_is_asked_once(trained: Path, asked: list[str], tmp_path: Path) -> None:
    first, second = run(trained, trained), run(trained, trained)
    assert len(asked) == 1
    assert (first.base_kept, second.base_kept) == (False, True)
    assert first.as_json() | {"baseline_kept": True} == second.as_json()
    run(trained, trained, keep=False)
    assert len(asked) == 2
    assert not list((tmp_path / "cache" / "evaluations").glob("*.part"))


def change_weights(home: Path) -> dict[str, Any]:
    tensors = load_file(home / "model.safetensors")
    save_file({**tensors, "model.norm.weight": tensors["model.norm.weight"] * 1.5}, home / "model.safetensors")
    return {}


def change_config(home: Path) -> dict[str, Any]:
    path = home / "config.json"
    path.write_text(path.read_text().replace('"rms_norm_eps": 1e-06', '"rms_norm_eps": 0.01'))
    return {}


@pytest.mark.parametrize(
    "change",
    [change_weights, change_config, lambda home: {"content": text().content[10:1500]}, lambda home: {"max_length": 64}, lambda home: {"dtype": "bfloat16"},
     lambda home: {"limit": 2}],
)  # fmt: skip
def test_what_matters_is_noticed(trained: Path, tmp_path: Path, asked: list[str], change: Callable[[Path], dict[str, Any]]) -> None:
    home = tmp_path / "base"
    copy_folder(trained, home, {})
    (home / "model.safetensors").write_bytes((trained / "model.safetensors").read_bytes())
    run(trained, home)
    again = run(trained, home, **change(home))
    assert len(asked) == 2
    assert not again.base_kept


def test_a_damaged_record_is_made_again(trained: Path, tmp_path: Path, asked: list[str]) -> None:
    first = run(trained, trained)
    for path in (tmp_path / "cache" / "evaluations").rglob("hidden.bin"):
        path.write_bytes(path.read_bytes()[:-1])
    for path in (tmp_path / "cache" / "evaluations").rglob("scores.npz"):
        path.write_bytes(b"PK")
    assert run(trained, trained).as_json() == first.as_json()
    assert len(asked) == 2


def test_only_the_head_of_the_baseline_is_beside_the_model(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the model that is measured is loaded, nothing of the baseline's layers is alive."""
    import gc

    from headway.models.decoder import Decoder

    alive: list[int] = []
    real = measurement.load

    def load(*words: Any) -> Any:
        alive.append(sum(isinstance(each, Decoder) for each in gc.get_objects()))
        return real(*words)

    monkeypatch.setattr(measurement, "load", load)
    run(trained, trained)
    assert alive == [0]


def test_a_cache_that_cannot_be_made_costs_time_only(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("file").write_text("no folder")
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "file"))
    assert run(trained, trained, limit=1).decision != "fail"


def test_a_full_disk_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordWriter, "add", full)
    with pytest.raises(ConfigError, match="No space left") as refused:
        run(trained, trained, limit=1)
    assert refused.value.reason == "cache_not_writable"


def record(folder: Path, tokens: int) -> Any:
    writer = RecordWriter(folder, torch.float32)
    writer.add([np.arange(tokens, dtype=np.float64)], torch.arange(tokens * 4.0).view(tokens, 4))
    return writer.finish()


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r", torch.bfloat16)
    hidden = torch.randn(5, 3).bfloat16()
    writer.add([np.array([-1.0, -2.0]), np.array([-3.0, -4.0, -np.inf])], hidden)
    writer.finish()
    found = read_record(tmp_path / "r", [2, 3])
    assert [each.tolist() for each in found.logprobs_of_each()] == [[-1, -2], [-3, -4, -np.inf]]
    assert torch.equal(torch.cat(list(found.hidden())), hidden)


def test_the_least_recently_used_makes_room(tmp_path: Path) -> None:
    tmp_path.joinpath("c").mkdir()
    size = sum(path.stat().st_size for path in record(tmp_path / "probe", 50).folder.iterdir())
    cache = BaselineCache(tmp_path / "c", most=2 * size + 50)
    for place, name in enumerate(("a", "b")):
        cache.keep(name, record(cache.new_place(name), 50))
        os.utime(tmp_path / "c" / name, (place + 1, place + 1))
    requests = [ScoringRequest(tuple(range(51)), 1)]
    assert cache.find("a", requests) is not None  # and with that it is the last that was used
    cache.keep("c", record(cache.new_place("c"), 50))
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["a", "c"]


def test_a_record_that_is_too_large_is_used_and_not_kept(tmp_path: Path) -> None:
    tmp_path.joinpath("c").mkdir()
    cache = BaselineCache(tmp_path / "c", most=100)
    kept = cache.keep("a", record(cache.new_place("a"), 50))
    assert len(torch.cat(list(kept.hidden()))) == 50
    cache.sweep()
    assert not list((tmp_path / "c").iterdir())
