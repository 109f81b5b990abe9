"""Which kernels run, by environment, dtype and what is built."""

from __future__ import annotations

import logging

import pytest
import torch

from headway.errors import ConfigError
from headway.kernels import choice
from headway.kernels.choice import default_kernels
from headway.kernels.native.library import NativeLibrary, native_library
from headway.kernels.torch_backend import TORCH

SETS = native_library().sets


@pytest.fixture(autouse=True)
def told_nothing() -> None:
    choice._tell.cache_clear()


@pytest.mark.parametrize("name", ["auto", *SETS])
def test_a_named_set_runs_and_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", name)
    with caplog.at_level(logging.INFO):
        kernels, again = default_kernels(torch.bfloat16), default_kernels(torch.bfloat16)
    wanted = SETS[0] if name == "auto" and SETS else name
    if SETS:
        assert kernels.name == again.name == wanted
        assert kernels.tape.set == wanted
        assert kernels.tape is not again.tape
        assert kernels.tape.threads == torch.get_num_threads()
    assert len(caplog.messages) == 1


def test_torch_runs_where_it_is_asked_for_and_for_other_dtypes(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", "torch")
    assert default_kernels(torch.bfloat16) is TORCH
    monkeypatch.setenv("HEADWAY_KERNELS", "auto")
    with caplog.at_level(logging.INFO):
        assert default_kernels(torch.float16) is TORCH
    assert "do not compute in float16" in caplog.text


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", "auto")
    for place in ("headway.kernels.choice", "headway.kernels.native.library"):
        monkeypatch.setattr(f"{place}.native_library", lambda: NativeLibrary(None, missing="no compiler here"))
    assert default_kernels(torch.float32) is TORCH
    assert "no compiler here" in caplog.text


def test_a_set_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_KERNELS", "abacus")
    with pytest.raises(ConfigError, match="HEADWAY_KERNELS=abacus") as error:
        default_kernels(torch.float32)
    assert error.value.reason == "unknown_kernels"
