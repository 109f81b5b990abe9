"""Where Triton's kernels run, and the errors where they cannot."""

from __future__ import annotations

import pytest
import torch

from headway.errors import ConfigError
from headway.kernels import choice
from headway.kernels.choice import default_kernels, engine_kernels, wants_triton
from headway.kernels.triton import place
from headway.kernels.triton.place import triton_place


def test_the_interpreter_runs_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", "Triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    choice._triton.cache_clear()
    for kernels in (engine_kernels(torch.bfloat16), default_kernels(torch.float16)):
        assert (kernels.name, kernels.device, kernels.decode_buffers) == ("triton", torch.device("cpu"), None)


def test_never_chosen_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "triton_place", lambda: torch.device("cuda", 0))
    for name in ("auto", "torch"):
        monkeypatch.setenv("HEADWAY_KERNELS", name)
        assert not wants_triton()
        assert engine_kernels(torch.float32).device.type == "cpu"


def test_a_machine_without_a_device_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", "triton")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"HEADWAY_KERNELS=triton needs a CUDA device: .*CUDA.* interpreter only") as error:
        engine_kernels(torch.float32)
    assert error.value.reason == "unknown_kernels"
    monkeypatch.setattr(place, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"triton is not installed. Install it with `pip install 'headway\[gpu\]'`"):
        triton_place()


def test_what_is_no_engine_is_refused_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", "triton")
    monkeypatch.setattr(choice, "triton_place", lambda: torch.device("cuda", 0))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    choice._triton.cache_clear()
    assert engine_kernels(torch.bfloat16).float8 is not None
    with pytest.raises(ConfigError, match=r"only language models of an engine .* run on cuda:0") as error:
        default_kernels(torch.bfloat16)
    assert error.value.reason == "unknown_kernels"
    choice._triton.cache_clear()
