"""Every kind of failure has its phrase and its retry class."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.artifacts.hub_errors import Asked, hub_refusal, unreachable
from headway.artifacts.hub_token import Token
from headway.artifacts.resumable_download import DownloadFailed
from headway.errors import ArtifactError, CapacityError, ConfigError, SelfCheckError
from headway.runtime.loading.load_failure import failure_reason, is_final

ASKED = Asked("acme/tiny", "a" * 40, Token(None, None), Path("/nowhere"))


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, {}),
        (403, {"X-Error-Code": "GatedRepo"}),
        (403, {}),
        (404, {}),
    ],
)
def test_refusals_of_the_hub(status: int, headers: dict[str, str]) -> None:
    error = hub_refusal(status, headers, "https://huggingface.co/api/models/acme/tiny", ASKED)
    assert failure_reason(error).startswith("ArtifactError: access denied, gated or private: acme/tiny")
    assert is_final(error)


def test_the_way_out_of_a_refusal_is_named() -> None:
    error = hub_refusal(401, {}, "https://huggingface.co/api/models/acme/tiny", ASKED)
    assert "hf auth login" in error.message
    assert "HF_TOKEN" in error.message


@pytest.mark.parametrize(
    "error",
    [
        unreachable(OSError("no route"), ASKED),
        hub_refusal(503, {}, "https://huggingface.co/x", ASKED),
        hub_refusal(429, {}, "https://huggingface.co/x", ASKED),
        DownloadFailed("interrupted"),
        CapacityError("too full"),
        MemoryError(),
        RuntimeError("CUDA driver is busy"),
        OSError("no space"),
    ],
)
def test_what_may_pass(error: BaseException) -> None:
    assert not is_final(error)


@pytest.mark.parametrize(
    "error",
    [
        ArtifactError("a", reason="hash_mismatch"),
        ArtifactError("a", reason="invalid_json"),
        ArtifactError("a", reason="offline_not_cached"),
        SelfCheckError("a"),
        ConfigError("a"),
        CapacityError("a", reason="lacks_capability"),
        CapacityError("a", reason="over_budget"),
        TypeError("'NoneType' object is not iterable"),
        KeyError("vocab_size"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ],
)
def test_what_is_final(error: Exception) -> None:
    assert is_final(error)


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), RuntimeError("CUDA out of memory")],
)
def test_memory_that_ran_out_has_its_phrase(error: BaseException) -> None:
    assert f"{type(error).__name__}: does not fit, out of memory: " in failure_reason(error)


def test_the_form_is_class_and_message_and_a_phrase_is_not_said_twice() -> None:
    assert failure_reason(ValueError("x")) == "ValueError: x"
    assert failure_reason(ArtifactError("a file hash does not match: y", reason="hash_mismatch")) == "ArtifactError: a file hash does not match: y"
    assert failure_reason(ArtifactError("y", reason="hash_mismatch")) == "ArtifactError: a file hash does not match: y"
