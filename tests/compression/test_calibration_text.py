"""Texts for calibration: what is read, what is refused, and how windows are taken from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from headway.artifacts.tokenizer import Tokenizer
from headway.artifacts.tokenizer_settings import TokenizerSettings
from headway.compression import calibration_text
from headway.compression.calibration_text import packaged_texts, texts_of_file, windows
from headway.errors import ConfigError


@pytest.fixture
def tokenizer() -> Tokenizer:
    """A token for each byte; conversations are the contents with a stroke between them."""
    backend = Backend(models.BPE({letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return Tokenizer(backend, TokenizerSettings(chat_templates={"default": "{% for m in messages %}{{ m.content }}|{% endfor %}"}))


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.txt", "one\ntwo\n\nthree\r\n\r\n\n\nfour\n", ["one\ntwo", "three", "four"]),
        ("a.txt", "\ufeffone\ntwo\n", ["one", "two"]),
        ("a.jsonl", '{"text": "one"}\n\n{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n', ["one", "a|b|"]),
        ("a.jsonl", '{"text": "", "messages": [{"role": "user", "content": "x"}]}', ["x|"]),
    ],
)
def test_files(tokenizer: Tokenizer, tmp_path: Path, name: str, content: str, texts: list[str]) -> None:
    (tmp_path / name).write_bytes(content.encode())
    assert texts_of_file(tmp_path / name, tokenizer) == texts


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"\xff\xfe\x00", "cannot be read"),
        ("a.txt", b"\n\n \n", "no text in it"),
        ("a.jsonl", b'{"text": "a"}\nnope', "line 2 is not JSON"),
        ("a.jsonl", b"[" * 100_000, "line 1 is not JSON"),
        ("a.jsonl", b'{"prompt": "a"}', 'line 1 has neither "text" nor "messages"'),
        ("a.jsonl", b'["a"]', "line 1 has neither"),
        ("a.jsonl", b'{"text": 3}', "line 1: its fields"),
        ("a.jsonl", b'{"messages": ["a"]}', "line 1: its fields"),
    ],
)
def test_files_that_are_none(tokenizer: Tokenizer, tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match="--calibration") as refused:
        texts_of_file(tmp_path / name, tokenizer)
    assert refused.value.reason == "calibration_file"
    assert said in refused.value.message


def test_missing_and_too_large(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration_text, "MOST_BYTES", 3)
    (tmp_path / "a.txt").write_text("four")
    for name, said in (("none.txt", "No such file"), ("a.txt", "4 bytes, the limit is 3")):
        with pytest.raises(ConfigError) as refused:
            texts_of_file(tmp_path / name, tokenizer)
        assert said in refused.value.message


def test_windows_come_from_everywhere(tokenizer: Tokenizer) -> None:
    text = "".join(chr(ord("a") + i) * 10 for i in range(26))
    found = windows([text], tokenizer, 13, 10, "it")
    assert found.tokens.shape == (13, 10)
    letters = [tokenizer.decode(row.tolist()) for row in found.tokens]
    assert letters == [chr(ord("a") + 2 * i) * 10 for i in range(13)]
    assert found.notes == ()
    assert found.digest == windows([text], tokenizer, 13, 10, "other").digest != windows([text], tokenizer, 12, 10, "it").digest


def test_less_text_than_asked_for(tokenizer: Tokenizer) -> None:
    found = windows(["abc" * 40], tokenizer, 128, 12, "it")
    assert found.tokens.shape == (10, 12)
    assert found.notes == ("it makes 10 samples of 12 tokens, 128 were asked for: all of it is used",)
    with pytest.raises(ConfigError, match="make 7 samples of 12") as refused:
        windows(["abc" * 30], tokenizer, 128, 12, "it")
    assert refused.value.reason == "calibration_too_small"


def test_the_texts_that_come_along() -> None:
    """Enough for 128 samples of 256 tokens, where a token of a common vocabulary has three to four characters and Chinese has one or two."""
    texts = packaged_texts()
    whole = "\n".join(texts)
    assert len(texts) > 100
    assert len(set(texts)) == len(texts)
    assert len(whole) > 128 * 256 * 3.5
    assert sum("\u4e00" <= letter <= "\u9fff" for letter in whole) > 3_000
    for sign in ("def ", "#include", "SELECT", "fn ", "func ", "Der Zug", "La abuela", "Сосед", "كان", "할머니", "गाँव", "冬の朝", "User:", "Theorem"):
        assert any(sign in text for text in texts), sign
    assert not any(bad in whole for bad in ("\r", "\x00", "\ufffd"))


