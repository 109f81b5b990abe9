"""The table reason -> status, and the envelope."""

from __future__ import annotations

import pytest

from headway import errors
from headway.errors import ConfigError, ContextLengthError, EngineDeadError, HeadwayError, QueueFullError, RequestError
from headway.wire.errors import SHAPES, error_body, scrub, shape_of


@pytest.mark.parametrize(
    ("error", "status", "kind", "reason"),
    [
        (RequestError("x"), 400, "BadRequestError", "invalid_request"),
        (RequestError("x", reason="body_invalid"), 400, "Bad Request", "body_invalid"),
        (RequestError("x", reason="some_new_word"), 400, "BadRequestError", "some_new_word"),
        (ContextLengthError("x"), 400, "BadRequestError", "context_length_exceeded"),
        (errors.NotBuiltError("x"), 400, "BadRequestError", "not_built"),
        (errors.NotFoundError("x", reason="model_not_found"), 404, "NotFoundError", "model_not_found"),
        (QueueFullError("x"), 503, "Service Unavailable", "queue_full"),
        (errors.LoadingError("x"), 503, "ServiceUnavailableError", "loading"),
        (EngineDeadError("x"), 500, "InternalServerError", "engine_dead"),
        (EngineDeadError("x", reason="shutting_down"), 503, "ServiceUnavailableError", "shutting_down"),
        (errors.StepError("x"), 500, "InternalServerError", "step_failed"),
        (HeadwayError("x", reason="unauthorized"), 401, "Unauthorized", "unauthorized"),
        (ConfigError("x"), 500, "InternalServerError", "invalid_config"),
        (ValueError("secret"), 500, "InternalServerError", "internal_error"),
    ],
)
def test_each_error_has_its_status_type_and_reason(error: Exception, status: int, kind: str, reason: str) -> None:
    found = error_body(error)["error"]
    assert (found["code"], found["type"], found["reason"]) == (status, kind, reason)
    assert shape_of(error) == (status, kind)


def test_every_request_error_in_the_tree_is_in_the_table() -> None:
    for name in ("RequestError", "ContextLengthError", "NotFoundError", "QueueFullError", "EngineDeadError", "StepError", "LoadingError"):
        assert getattr(errors, name).reason in SHAPES


def test_a_defect_shows_nothing_of_its_text() -> None:
    assert "secret" not in error_body(ValueError("secret"))["error"]["message"]


def test_param_and_fix_are_told() -> None:
    found = error_body(RequestError("n is wrong", param="n", fix="Use 1."))["error"]
    assert (found["message"], found["param"]) == ("n is wrong. Use 1.", "n")


def test_long_messages_are_cut() -> None:
    assert len(error_body(RequestError("x" * 5000))["error"]["message"]) == 2000


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cannot read /home/someone/models/a.gguf: gone", "cannot read a.gguf: gone"),
        ("object at 0x7f12ab34cd56 failed", "object at 0x... failed"),
        ("see http://example.test/a/b for 3/4 of it", "see http://example.test/a/b for 3/4 of it"),
    ],
)
def test_paths_and_addresses_are_scrubbed(message: str, shown: str) -> None:
    assert scrub(message) == shown
    assert error_body(EngineDeadError(message))["error"]["message"] == shown
