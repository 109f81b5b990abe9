"""Group A, what streams look like: usage (A01), stop strings (A02), characters over several tokens (A04)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import CHAT, COMPLETIONS, error

PIECES = ("DEF", "HI", "HX", " Paris is")


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel(scripted_tokenizer(PIECES))


@pytest.fixture(scope="module")
def server(model: ScriptedModel) -> Iterator[CaseServer]:
    with case_server(*scripted_engine(model)) as running:
        yield running
        running.check_alive()


# ---- A01 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("options", [{}, {"stream_options": {}}])
def test_a01_no_usage_unless_asked(server: CaseServer, model: ScriptedModel, path: str, options: dict[str, object]) -> None:
    model.say_bytes(b"Hello there")
    assert all(chunk.get("usage") is None for chunk in server.chunks(path, max_tokens=5, **options))


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a01_final_usage_in_exactly_one_chunk(server: CaseServer, model: ScriptedModel, path: str) -> None:
    model.say_bytes(b"Hello there")
    *others, last = server.chunks(path, max_tokens=5, stream_options={"include_usage": True})
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 5
    assert all(chunk["choices"] and chunk.get("usage") is None for chunk in others)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a01_continuous_usage_never_falls_and_ends_at_the_whole_answer(
    server: CaseServer, model: ScriptedModel, path: str
) -> None:
    model.say_bytes(b"Hello there")
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = server.chunks(path, max_tokens=5, stream_options=options)
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    whole = (server.chat if path == CHAT else server.complete)(max_tokens=5).json()
    assert chunks[-1]["usage"] == {k: v for k, v in whole["usage"].items() if v is not None}
    assert counts[-1] == 5


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a01_stream_options_without_a_stream_are_refused(server: CaseServer, path: str) -> None:
    send = server.chat if path == CHAT else server.complete
    found = error(send(max_tokens=5, stream=False, stream_options={"include_usage": True}), 400, param="stream_options")
    assert "stream_options" in found["message"]


# ---- A02 -----------------------------------------------------------------------------------------------------------

STOPS = {
    "spans tokens": (("A", "B", "C", "DEF", "G", "HI", "J", "K"), ["DEFGHIJ"], False, "ABC", "stop"),
    "near miss": (("DEF", "G", "HX"), ["DEFGHIJ"], False, "DEFGHX", "stop"),
    "inside a token": ((" Paris is",), ["Pari"], False, " ", "stop"),
    "earliest in the text": (("A", "B", "C", "DEF", "G", "HI", "J", "K"), ["HI", "DEF"], False, "ABC", "stop"),
    "included": (("A", "B", "C", "DEF", "G", "HI", "J", "K"), ["DEFGHIJ"], True, "ABCDEFGHIJ", "stop"),
}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("name", list(STOPS))
def test_a02_stop_strings(server: CaseServer, model: ScriptedModel, path: str, name: str) -> None:
    pieces, stop, include, expected, reason = STOPS[name]
    model.say_pieces(*pieces)
    body = {"stop": stop, "include_stop_str_in_output": include}
    choice = (server.chat if path == CHAT else server.complete)(**body).json()["choices"][0]
    whole = choice["message"]["content"] if path == CHAT else choice["text"]
    assert (whole, choice["finish_reason"]) == (expected, reason)
    chunks = server.chunks(path, **body)
    deltas = [c["choices"][0]["delta"]["content"] if path == CHAT else c["choices"][0]["text"] for c in chunks]
    assert "".join(deltas) == expected
    assert chunks[-1]["choices"][0]["finish_reason"] == reason
    if name == "spans tokens":
        assert not set("".join(deltas)) & set("DEFGHIJ")
        assert choice["stop_reason"] == "DEFGHIJ"
    if name == "earliest in the text":
        assert choice["stop_reason"] == "DEF"


@pytest.mark.parametrize("stop", ["", ["a", ""], ["a", "b", "c", "d", "e"]])
def test_a02_stops_that_are_refused(server: CaseServer, stop: object) -> None:
    assert "stop" in error(server.complete(stop=stop), 400, param="stop")["message"]


# ---- A04 -----------------------------------------------------------------------------------------------------------

TEXT = "ok 🙂 中é👩‍👧 end"


def _deltas(server: CaseServer, path: str, **body: object) -> list[str]:
    chunks = server.chunks(path, max_tokens=60, **body)
    return [c["choices"][0]["delta"]["content"] if path == CHAT else c["choices"][0]["text"] for c in chunks]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a04_no_replacement_character_in_any_delta(server: CaseServer, model: ScriptedModel, path: str) -> None:
    model.say_bytes(TEXT.encode())
    deltas = _deltas(server, path)
    assert not any("\ufffd" in delta for delta in deltas)
    assert "".join(deltas) == TEXT
    assert len([delta for delta in deltas if delta]) == len([*TEXT])  # each character as soon as it is whole


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a04_a_character_cut_by_the_limit(server: CaseServer, model: ScriptedModel, path: str) -> None:
    model.say_bytes("🙂".encode())
    body = {"max_tokens": 2}
    choice = (server.chat if path == CHAT else server.complete)(**body).json()["choices"][0]
    whole = choice["message"]["content"] if path == CHAT else choice["text"]
    chunks = server.chunks(path, **body)
    streamed = "".join(c["choices"][0]["delta"]["content"] if path == CHAT else c["choices"][0]["text"] for c in chunks)
    assert whole == streamed
    assert whole in ("", "\ufffd")
    assert choice["finish_reason"] == "length"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a04_an_invalid_byte_does_not_hold_up_the_text(server: CaseServer, model: ScriptedModel, path: str) -> None:
    model.say_bytes(b"\xff" + b"abcdefghijklmnopqrst")
    deltas = [delta for delta in _deltas(server, path) if delta]
    assert "\ufffd" in "".join(deltas[:4])
    assert "".join(deltas) == "\ufffdabcdefghijklmnopqrst"
    assert len(deltas) >= 18


def test_a04_bytes_of_logprobs_rebuild_the_characters(server: CaseServer, model: ScriptedModel) -> None:
    model.say_bytes(TEXT.encode())
    response = server.chat(logprobs=True, max_tokens=60)
    content = response.json()["choices"][0]["logprobs"]["content"]
    assert bytes(b for entry in content[:-1] for b in entry["bytes"]).decode() == TEXT
    assert content[-1]["token"] == "<eos>"
    assert "\\ud8" not in response.text.lower()  # real characters, no surrogates


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a04_frames_are_valid_utf8_and_json(server: CaseServer, model: ScriptedModel, path: str) -> None:
    model.say_bytes(TEXT.encode())
    response = (server.chat if path == CHAT else server.complete)(stream=True, max_tokens=60)
    for event in response.content.decode("utf-8").split("\n\n"):
        if event.startswith("data: {"):
            json.loads(event[6:])
