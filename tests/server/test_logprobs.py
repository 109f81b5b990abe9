"""Log-probabilities in both shapes, streamed and not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headway.engine.outputs import Logprob
from headway.server.logprobs import CompletionLogprobWriter, TokenNames, chat_logprobs
from headway.server.token_pieces import TokenPieces
from tests.server.api import CHAT, COMPLETIONS, Api
from tests.server.scripted_engine import EOS, ByteTokenizer, ScriptedEngine

Make = Callable[..., Api]


def names(as_ids: bool = False) -> TokenNames:
    return TokenNames(TokenPieces(ByteTokenizer()), as_ids)


def merged(chunks: list[dict[str, Any]]) -> dict[str, list[Any]]:
    parts = [c["logprobs"] for k in chunks for c in k["choices"]]
    return {name: [x for p in parts for x in p[name]] for name in parts[0]}


def test_completion_lists_are_parallel_and_streamed_alike(api: Api) -> None:
    whole = api.complete(logprobs=2, max_tokens=3)["choices"][0]["logprobs"]
    assert whole == {
        "text_offset": [0, 1, 2],
        "token_logprobs": [-0.5, -0.5, -0.5],
        "tokens": ["H", "e", "l"],
        "top_logprobs": [{"H": -0.5, "I": -1.5}, {"e": -0.5, "f": -1.5}, {"l": -0.5, "m": -1.5}],
    }
    assert merged(api.stream(COMPLETIONS, logprobs=2, max_tokens=3)) == whole


def test_echo_begins_with_the_prompt_whose_first_token_has_none(api: Api) -> None:
    fields = {"prompt": "café 🙂 x", "echo": True, "logprobs": 1, "max_tokens": 2}
    whole = api.complete(**fields)["choices"][0]
    found = whole["logprobs"]
    assert {len(v) for v in found.values()} == {len("café 🙂 x".encode()) + 2}
    assert (found["token_logprobs"][0], found["top_logprobs"][0]) == (None, None)
    for token, offset in zip(found["tokens"], found["text_offset"], strict=True):
        if token.isascii():
            assert whole["text"][offset] == token
    assert found["text_offset"] == [0, 1, 2, 3, 3, 4, 5, 5, 5, 5, 6, 7, 8, 9]
    assert merged(api.stream(COMPLETIONS, **fields)) == found


def test_echo_with_several_choices_repeats_the_prompt_in_each(api: Api) -> None:
    for choice in api.complete(echo=True, logprobs=0, n=2, max_tokens=1)["choices"]:
        assert choice["logprobs"]["tokens"] == ["S", "a", "y", "H"]


def test_zero_alternatives_still_name_the_token(api: Api) -> None:
    assert api.complete(logprobs=0, max_tokens=1)["choices"][0]["logprobs"]["top_logprobs"] == [{"H": -0.5}]


def test_chat_objects(api: Api) -> None:
    content = api.chat(logprobs=True, top_logprobs=2, max_tokens=2)["choices"][0]["logprobs"]["content"]
    assert content[0] == {
        "token": "H", "logprob": -0.5, "bytes": [72],
        "top_logprobs": [{"token": "H", "logprob": -0.5, "bytes": [72]}, {"token": "I", "logprob": -1.5, "bytes": [73]}],
    }  # fmt: skip
    chunks = api.stream(CHAT, logprobs=True, top_logprobs=2, max_tokens=2)
    assert [i for k in chunks for c in k["choices"] if c["logprobs"] for i in c["logprobs"]["content"]] == content


def test_chat_without_alternatives(api: Api) -> None:
    for extra in ({}, {"top_logprobs": 0}):
        assert all(i["top_logprobs"] == [] for i in api.chat(logprobs=True, **extra)["choices"][0]["logprobs"]["content"])


def test_bytes_rebuild_split_characters(make_api: Make) -> None:
    api = make_api(ScriptedEngine("é🙂".encode()))
    chunks = api.stream(CHAT, logprobs=True)
    items = [i for k in chunks for c in k["choices"] if c["logprobs"] for i in c["logprobs"]["content"]]
    assert bytes(b for i in items for b in i["bytes"]).decode() == "é🙂<eos>"
    assert items[0]["token"] == "\ufffd"


def test_tokens_as_ids_by_request_and_by_server(make_api: Make) -> None:
    asked = {"logprobs": 1, "max_tokens": 1}
    assert make_api().complete(return_tokens_as_token_ids=True, **asked)["choices"][0]["logprobs"]["tokens"] == ["token_id:72"]
    api = make_api(return_tokens_as_token_ids=True)
    assert api.complete(**asked)["choices"][0]["logprobs"]["top_logprobs"] == [{"token_id:72": -0.5}]
    assert api.complete(return_tokens_as_token_ids=False, **asked)["choices"][0]["logprobs"]["tokens"] == ["H"]


def test_minus_infinity_becomes_a_number() -> None:
    row = {65: Logprob(-math.inf, 9), 66: Logprob(-1.0, 1)}
    written = CompletionLogprobWriter(names(), skip_special=True).output([65], [row])
    assert (written["token_logprobs"], written["top_logprobs"]) == ([-9999.0], [{"B": -1.0, "A": -9999.0}])
    assert chat_logprobs(names(), [65], [row], 2)["content"][0]["logprob"] == -9999.0


def test_a_sampled_token_outside_the_best_is_present() -> None:
    row = {65: Logprob(-7.0, 9), 66: Logprob(-1.0, 1), 67: Logprob(-2.0, 2)}
    entry = chat_logprobs(names(), [65], [row], 2)["content"][0]
    assert (entry["token"], entry["logprob"]) == ("A", -7.0)
    assert [t["token"] for t in entry["top_logprobs"]] == ["B", "C"]


def test_of_tokens_with_one_name_the_most_probable_is_kept() -> None:
    row = {0xE2: Logprob(-2.0, 2), 0xF0: Logprob(-1.0, 1)}
    assert CompletionLogprobWriter(names(), skip_special=True).output([0xE2], [row])["top_logprobs"] == [{"\ufffd": -1.0}]


def test_special_tokens_take_no_room_where_the_text_leaves_them_out() -> None:
    row = {EOS: Logprob(-1.0, 1)}
    x = {120: Logprob(-1.0, 1)}
    for skip, offsets in ((True, [0, 0, 1]), (False, [0, 5, 6])):
        assert CompletionLogprobWriter(names(), skip).output([EOS, 120, 120], [row, x, x])["text_offset"] == offsets


def test_offsets_follow_a_text_whose_first_space_was_dropped() -> None:
    writer = CompletionLogprobWriter(names(), skip_special=True)
    row = {120: Logprob(-1.0, 1)}
    written = writer.prompt([32, 120, 120], [None, row, row], text_length=2)
    assert written["text_offset"] == [0, 0, 1]
    assert writer.output([120], [row])["text_offset"] == [2]
