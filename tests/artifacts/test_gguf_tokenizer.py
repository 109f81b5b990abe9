from __future__ import annotations

import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.artifacts.gguf_tokenizer import gguf_tokenizer
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.artifacts.tokenizer_presplits import PRESPLITS
from headway.errors import ArtifactError, NotBuiltError
from tests.artifacts.trained_tokenizers import TEXTS, card_for, save, sentencepiece_vocabulary, trained

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def byte_level_metadata(**changes: Any) -> dict[str, Any]:
    """The trained byte-level tokenizer as GGUF metadata."""
    state = json.loads(trained("byte_level"))["model"]
    tokens = sorted(state["vocab"], key=state["vocab"].get)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array([CONTROL] * 3 + [NORMAL] * (len(tokens) - 3), np.int32),
        "tokenizer.ggml.merges": [" ".join(merge) for merge in state["merges"]],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
    } | {f"tokenizer.{key}": value for key, value in changes.items()}


def sentencepiece_metadata(**changes: Any) -> dict[str, Any]:
    vocab, merges = sentencepiece_vocabulary()
    ranks = {left + right: -float(rank) for rank, (left, right) in reversed(list(enumerate(merges)))}
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(vocab) - 259)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": list(vocab),
        "tokenizer.ggml.scores": np.array([ranks.get(token, -1e4) for token in vocab], np.float32),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    } | {f"tokenizer.{key}": value for key, value in changes.items()}


def built(metadata: dict[str, Any]) -> Tokenizer:
    made = gguf_tokenizer(metadata, "test.gguf")
    return Tokenizer(made.backend, made.settings, eos_ids=made.eos_ids)


def write(path: Path, metadata: dict[str, Any]) -> Path:
    """Write `metadata` with the reference writer."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in metadata.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_array(key, value.tolist() if isinstance(value, np.ndarray) else value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


# --- byte-level


@pytest.mark.parametrize("special", [True, False])
def test_byte_level_equals_the_tokenizer_it_was_written_from(special: bool, tmp_path: Path) -> None:
    original = load_tokenizer(save("byte_level", tmp_path / "folder"))
    ours = load_tokenizer(card_for(write(tmp_path / "model.gguf", byte_level_metadata())))
    for text in TEXTS:
        ids = ours.encode(text, add_special_tokens=special)
        assert ids == original.encode(text, add_special_tokens=special), text
        assert ours.decode(ids) == original.decode(ids)
    assert (ours.bos_id, ours.eos_ids, ours.special_ids, ours.vocab_size, ours.adds_bos) == (
        original.bos_id, original.eos_ids, original.special_ids, original.vocab_size, False,
    )  # fmt: skip
    assert ours.byte_exact


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=40))
def test_byte_level_equals_it_on_any_text(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not PAIR:
        PAIR.extend([load_tokenizer(save("byte_level", tmp_path_factory.mktemp("original"))), built(byte_level_metadata())])
    original, ours = PAIR
    assert ours.encode(text) == original.encode(text)


PAIR: list[Tokenizer] = []


def test_same_ids_as_the_gguf_reader_of_transformers(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", byte_level_metadata(**{"ggml.pre": "gpt-2"}))
    ours = load_tokenizer(card_for(tmp_path / "model.gguf"))
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path), gguf_file="model.gguf")
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text), text


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        ("gpt-2", " I'll  pay 1234€\n\nNOW 'LL", [" I", "'ll", " ", " pay", " 1234", "€", "\n", "\n", "NOW", " '", "LL"]),
        ("default", "a  1", ["a", " ", " 1"]),
        ("smollm", "pay  1234½ x", ["pay", "  ", "1", "2", "3", "4", "½", " x"]),
        ("llama-bpe", " I'LL pay 12345!\n\n (ok)", [" I", "'LL", " pay", " ", "123", "45", "!\n\n", " (", "ok", ")"]),
        ("qwen2", " I'LL pay 123!\n\n (ok)", [" I", "'LL", " pay", " ", "1", "2", "3", "!\n\n", " (", "ok", ")"]),
        ("tekken", "camelCase HTTPServer 12 a/b/\n", ["camel", "Case", " HTTPServer", " ", "1", "2", " a", "/b", "/\n"]),
        ("gpt-4o", "camelCase don't 12345", ["camel", "Case", " don't", " ", "123", "45"]),
        ("deepseek-v3", "a中文b 1234 (x", ["a", "中文", "b", " ", "123", "4", " (", "x"]),
    ],
)
def test_pre_tokenizers_cut_text_as_their_models_expect(pre: str, text: str, pieces: list[str]) -> None:
    cut = PRESPLITS[pre].pre_tokenizer().pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in cut] == pieces


@pytest.mark.parametrize("pre", sorted(PRESPLITS))
def test_every_pre_tokenizer_keeps_all_text(pre: str) -> None:
    tokenizer = built(byte_level_metadata(**{"ggml.pre": pre}))
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert tokenizer.notes == ()


def test_pre_tokenizer_of_transformers_for_the_same_model() -> None:
    from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

    assert PRESPLITS["qwen2"].patterns == (PRETOKENIZE_REGEX,)


def test_unknown_pre_tokenizer_is_noted_and_cuts_as_gpt2(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    card = card_for(write(tmp_path / "model.gguf", byte_level_metadata(**{"ggml.pre": "brand-new"})))
    with caplog.at_level(logging.WARNING):
        tokenizer = load_tokenizer(card)
    assert "unknown pre-tokenizer 'brand-new'" in caplog.text
    assert tokenizer.encode("a  12") == built(byte_level_metadata(**{"ggml.pre": "gpt-2"})).encode("a  12")


def test_whole_words_are_not_merged_from_parts() -> None:
    tokens = byte_level_metadata()["tokenizer.ggml.tokens"]
    changes: dict[str, Any] = {"ggml.tokens": [*tokens, "zzz"], "ggml.token_type": np.full(len(tokens) + 1, NORMAL)}
    assert built(byte_level_metadata(**changes, **{"ggml.pre": "llama-bpe"})).encode("zzz") == [len(tokens)]
    assert len(built(byte_level_metadata(**changes, **{"ggml.pre": "qwen2"})).encode("zzz")) == 3


@pytest.mark.parametrize(
    ("pre", "stated", "expected"), [("llama-bpe", None, True), ("qwen2", None, False), ("qwen2", True, True), ("llama-bpe", False, False)]
)
def test_bos_is_added_as_stated_or_as_usual_for_the_kind(pre: str, stated: bool | None, expected: bool) -> None:
    metadata = byte_level_metadata(**{"ggml.pre": pre, "ggml.add_bos_token": stated})
    if stated is None:
        del metadata["tokenizer.ggml.add_bos_token"]
    tokenizer = built(metadata)
    assert tokenizer.adds_bos is expected
    assert (tokenizer.encode("x")[0] == 1) is expected
    assert tokenizer.encode("x", add_special_tokens=False)[0] != 1


def test_eos_is_added_when_stated() -> None:
    tokenizer = built(byte_level_metadata(**{"ggml.add_bos_token": True, "ggml.add_eos_token": True}))
    assert tokenizer.encode("") == [1, 2]


def test_all_ends_of_an_answer_are_known() -> None:
    assert built(byte_level_metadata(**{"ggml.eot_token_id": 7, "ggml.eom_token_id": 2})).eos_ids == (2, 7)
    assert built(byte_level_metadata(**{"ggml.eos_token_id": 0xFFFFFFFF})).eos_ids == ()


def test_control_tokens_are_special_and_user_defined_ones_are_not() -> None:
    tokens = byte_level_metadata()["tokenizer.ggml.tokens"]
    types = [CONTROL] * 3 + [NORMAL] * (len(tokens) - 3) + [USER_DEFINED, CONTROL]
    tokenizer = built(byte_level_metadata(**{"ggml.tokens": [*tokens, "  <think>", "<｜end▁of｜>"], "ggml.token_type": np.array(types)}))
    first = len(tokens)
    ids = tokenizer.encode("x  <think>y<｜end▁of｜>", add_special_tokens=False)
    assert ids[1] == first
    assert ids[-1] == first + 1
    assert tokenizer.decode(ids) == "x  <think>y"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "x  <think>y<｜end▁of｜>"
    assert tokenizer.special_ids == {0, 1, 2, first + 1}


def test_chat_templates_of_the_file(tmp_path: Path) -> None:
    metadata = byte_level_metadata(chat_template="{{ bos_token }}{{ eos_token }}", **{"chat_template.rag": "rag"})
    tokenizer = load_tokenizer(card_for(write(tmp_path / "model.gguf", metadata)))
    assert tokenizer.render_chat([{"role": "user", "content": "x"}]) == "<|im_start|><|im_end|>"
    assert tokenizer.render_chat([{"role": "user", "content": "x"}], chat_template="rag") == "rag"
    assert tokenizer.hf().apply_chat_template([{"role": "user", "content": "x"}], tokenize=False) == "<|im_start|><|im_end|>"
    assert tokenizer.hf().encode("a b") == tokenizer.encode("a b")


# --- SentencePiece


def merge_by_score(text: str, metadata: dict[str, Any]) -> list[str]:
    """The definition: of all neighbours whose union is a token, join the best-scored, the leftmost of equals."""
    scores = dict(zip(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"].tolist(), strict=True))
    parts = list(text.replace(" ", "▁"))
    while True:
        joins = [(-scores[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        if not joins:
            break
        _, i = min(joins)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    known = set(scores)
    return [t for part in parts for t in ([part] if part in known else [f"<0x{byte:02X}>" for byte in part.encode()])]


@settings(max_examples=200, deadline=None)
@given(text=st.one_of(st.text(max_size=30), st.text(alphabet="ab l.\n中文", max_size=60)))
def test_sentencepiece_joins_by_score(text: str) -> None:
    if not SENTENCEPIECE:
        SENTENCEPIECE.append(built(sentencepiece_metadata()))
    tokenizer = SENTENCEPIECE[0]
    expected = merge_by_score(" " + text, sentencepiece_metadata()) if text else []
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert [tokenizer.token_name(i) for i in ids] == expected
    assert tokenizer.decode(ids) == text.replace("▁", " ")


SENTENCEPIECE: list[Tokenizer] = []


def test_sentencepiece_equals_the_gguf_reader_of_transformers(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", sentencepiece_metadata())
    ours = load_tokenizer(card_for(tmp_path / "model.gguf"))
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path), gguf_file="model.gguf")
    for text in TEXTS:
        # Theirs puts no space before text that starts with one or follows a special token; llama.cpp does.
        if not text.startswith(" ") and "<s>" not in text:
            assert ours.encode(text) == theirs.encode(text), text
    assert ours.adds_bos


def test_a_space_is_put_before_every_stretch_of_text() -> None:
    tokenizer = built(sentencepiece_metadata())
    def names(text: str) -> list[str | None]:
        return [tokenizer.token_name(i) for i in tokenizer.encode(text, add_special_tokens=False)]

    assert names("a<s>a") == ["▁a", "<s>", "▁a"]
    assert "".join(str(n) for n in names("  a")) == "▁▁▁a"
    assert tokenizer.decode(tokenizer.encode("  a")) == "  a"
    without = built(sentencepiece_metadata(**{"ggml.add_space_prefix": False}))
    assert [without.token_name(i) for i in without.encode("a<s>a")] == ["<s>", "a", "<s>", "a"]
    assert without.decode(without.encode(" a")) == " a"


def test_user_defined_tokens_of_sentencepiece_are_found_whole() -> None:
    tokens = sentencepiece_metadata()["tokenizer.ggml.tokens"]
    metadata = sentencepiece_metadata(**{
        "ggml.tokens": [*tokens, "\n\n\n", "   "], "ggml.scores": np.zeros(len(tokens) + 2), "ggml.add_space_prefix": False,
        "ggml.token_type": np.array([UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 259) + [USER_DEFINED] * 2),
    })  # fmt: skip
    tokenizer = built(metadata)
    ids = tokenizer.encode("a\n\n\n   a", add_special_tokens=False)
    assert ids[1:-1] == [len(tokens), len(tokens) + 1]
    assert tokenizer.decode(ids) == "a\n\n\n   a"


def test_text_that_looks_like_a_byte_token_stays_text() -> None:
    tokens = sentencepiece_metadata()["tokenizer.ggml.tokens"]
    more = [piece for piece in ("<", "0", "x", "4", "1", ">", "<0", "<0x", "<0x4", "1>") if piece not in tokens]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 259 + len(more))
    scores = np.concatenate([sentencepiece_metadata()["tokenizer.ggml.scores"], np.zeros(len(more))])
    tokenizer = built(sentencepiece_metadata(**{"ggml.tokens": [*tokens, *more], "ggml.token_type": np.array(types), "ggml.scores": scores}))
    ids = tokenizer.encode("<0x41>", add_special_tokens=False)
    assert [tokenizer.token_name(i) for i in ids] == ["▁", "<0x4", "1>"]
    assert tokenizer.decode(ids) == "<0x41>"


# --- files from outside


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("ggml.tokens", None, "tokens"),
        ("ggml.tokens", [1, 2], "tokens"),
        ("ggml.tokens", [], "tokens"),
        ("ggml.merges", None, "merges"),
        ("ggml.merges", ["nothing"], "merge"),
        ("ggml.merges", ["Q Q"], "QQ"),
        ("ggml.token_type", np.zeros(3), "token_type"),
        ("ggml.token_type", ["a"], "token_type"),
        ("ggml.bos_token_id", 10**6, "bos_token_id"),
        ("ggml.eos_token_id", "x", "eos_token_id"),
        ("ggml.add_bos_token", 3, "add_bos_token"),
    ],
)
def test_metadata_that_cannot_be_right_is_refused(key: str, value: object, named: str) -> None:
    with pytest.raises(ArtifactError, match=named) as raised:
        built(byte_level_metadata(**{key: value}))
    assert raised.value.reason == "tokenizer_invalid"
    assert raised.value.param == "test.gguf"


def test_a_file_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"general.name": "x"})
    with pytest.raises(ArtifactError, match=r"tokenizer\.ggml\.model.*--tokenizer") as raised:
        load_tokenizer(card_for(path))
    assert raised.value.reason == "tokenizer_missing"


@pytest.mark.parametrize("kind", ["bert", "t5", "rwkv"])
def test_other_kinds_are_not_built(kind: str) -> None:
    with pytest.raises(NotBuiltError, match=kind):
        built(byte_level_metadata(**{"ggml.model": kind}))


def test_duplicate_filler_tokens_keep_the_first_id() -> None:
    tokens = byte_level_metadata()["tokenizer.ggml.tokens"]
    types = np.full(len(tokens) + 2, NORMAL)
    tokenizer = built(byte_level_metadata(**{"ggml.tokens": [*tokens, "the", "the"], "ggml.token_type": types}))
    assert tokenizer.decode(tokenizer.encode("the")) == "the"


def test_the_ids_of_a_gguf_model_can_be_replaced_by_a_tokenizer_folder(tmp_path: Path) -> None:
    card = card_for(write(tmp_path / "model.gguf", {"general.name": "x"}))
    save("llama", tmp_path / "folder")
    assert load_tokenizer(card, str(tmp_path / "folder")).decode([]) == ""
