from __future__ import annotations

import importlib
import json
import logging
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken

from headway.artifacts.tokenizer import load_tokenizer
from headway.errors import ArtifactError, RequestError
from tests.artifacts.trained_tokenizers import CORPUS, EXACT, KINDS, TEXTS, card_for, save, trained


def auto(folder: Path) -> transformers.PreTrainedTokenizerBase:
    return transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


@pytest.mark.parametrize("kind", KINDS)
def test_same_ids_and_text_as_transformers(kind: str, tmp_path: Path) -> None:
    ours, theirs = load_tokenizer(save(kind, tmp_path)), auto(tmp_path)
    for text in TEXTS:
        for special in (True, False):
            ids = ours.encode(text, add_special_tokens=special)
            assert ids == theirs.encode(text, add_special_tokens=special), text
            assert ours.decode(ids, skip_special_tokens=special) == theirs.decode(ids, skip_special_tokens=special), text
    assert ours.vocab_size == len(theirs)
    assert ours.bos_id == theirs.bos_token_id


def test_same_ids_as_transformers_when_its_llama_class_rebuilds_the_tokenizer(tmp_path: Path) -> None:
    ours = load_tokenizer(save("llama_metaspace", tmp_path, tokenizer_class="LlamaTokenizer"))
    theirs = auto(tmp_path)
    assert type(theirs).__name__ == "LlamaTokenizer"
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text), text


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"), max_size=30))
def test_bytes_of_tokens_join_to_the_text(kind: str, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    tokenizer = loaded(kind, tmp_path_factory)
    assert tokenizer.byte_exact
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.backend.decode(ids)
    if kind not in ("unigram", "llama_metaspace"):  # these lose something: unknown characters, a leading space
        assert tokenizer.decode(ids) == text
    ids = tokenizer.encode("x" + text, add_special_tokens=False)
    running = b"".join(tokenizer.token_bytes(i) for i in ids)
    assert running.decode().removeprefix(" ") == tokenizer.decode(ids, skip_special_tokens=False)


_LOADED: dict[str, object] = {}


def loaded(kind: str, factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    if kind not in _LOADED:
        _LOADED[kind] = load_tokenizer(save(kind, factory.mktemp(kind)))
    return _LOADED[kind]


@pytest.mark.parametrize("kind", ["byte_level", "byte_level_bos"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_byte_level_decode_equals_the_library_for_any_ids(kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    tokenizer = loaded(kind, tmp_path_factory)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=40))
    for skip in (True, False):
        assert tokenizer.decode(ids, skip_special_tokens=skip) == tokenizer.backend.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize("kind", ["llama", "llama_metaspace", "gemma", "unigram"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_decode_equals_the_library_for_any_ids_of_valid_bytes(kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    tokenizer = loaded(kind, tmp_path_factory)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=8))
    for skip in (True, False):
        theirs = tokenizer.backend.decode(ids, skip_special_tokens=skip)
        ours = tokenizer.decode(ids, skip_special_tokens=skip)
        assert ours == theirs or "\ufffd" in theirs
        assert ("\ufffd" in ours) <= ("\ufffd" in theirs)


def test_a_bad_byte_does_not_destroy_its_valid_neighbours(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save("gemma", tmp_path))
    ids = [tokenizer.backend.token_to_id(f"<0x{byte:02X}>") for byte in "鿿".encode() + b"\xff" + "鿿".encode()]
    assert tokenizer.backend.decode(ids) == "\ufffd" * 7
    assert tokenizer.decode(ids) == "鿿\ufffd鿿"


@pytest.mark.parametrize(("kind", "expected"), [("byte_level", False), ("byte_level_bos", True), ("llama", True), ("wordpiece", False)])
def test_adds_bos_is_what_encoding_does(kind: str, expected: bool, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save(kind, tmp_path))
    assert tokenizer.adds_bos is expected
    assert (tokenizer.encode("x")[0] == tokenizer.bos_id) is expected


def test_truncation_and_padding_of_the_file_do_not_apply(tmp_path: Path) -> None:
    card = save("byte_level", tmp_path)
    state = json.loads(trained("byte_level"))
    state["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    state["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(state))
    tokenizer = load_tokenizer(card)
    text = "The quick brown fox jumps over the lazy dog"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode("a") == auto(tmp_path).encode("a")


# --- tokenizer_config.json


def test_special_tokens_as_objects(tmp_path: Path) -> None:
    as_object = {"__type": "AddedToken", "content": "<|im_end|>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    tokenizer = load_tokenizer(save("byte_level", tmp_path, eos_token=as_object))
    assert tokenizer.eos_ids == (2,) == (auto(tmp_path).eos_token_id,)
    del as_object["__type"]
    assert load_tokenizer(save("byte_level", tmp_path, eos_token=as_object)).eos_ids == (2,)


def test_added_tokens_missing_in_the_vocabulary_are_added_as_in_transformers(tmp_path: Path) -> None:
    size = load_tokenizer(save("byte_level", tmp_path)).vocab_size
    decoder = {str(size): {"content": "<tool>", "special": False, "lstrip": True}, str(size + 1): {"content": "<new-eos>", "special": False}}
    tokenizer = load_tokenizer(
        save("byte_level", tmp_path, added_tokens_decoder=decoder, eos_token="<new-eos>", extra_special_tokens=["<extra>"])
    )
    theirs = auto(tmp_path)
    for text in ("a <tool>b<new-eos>", "<extra><|im_start|> x"):
        assert tokenizer.encode(text) == theirs.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == theirs.decode(theirs.encode(text), skip_special_tokens=True)
    assert tokenizer.eos_ids == (size + 1,)
    assert size + 1 in tokenizer.special_ids
    assert size not in tokenizer.special_ids
    assert tokenizer.added_ids >= {size, size + 1, size + 2}


def test_older_special_tokens_map_is_read(tmp_path: Path) -> None:
    card = save("byte_level", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": "<|im_end|>", "lstrip": False}, "bos_token": "<|im_start|>"}))
    tokenizer = load_tokenizer(card)
    assert (tokenizer.bos_id, tokenizer.eos_ids) == (1, (2,)) == (auto(tmp_path).bos_token_id, (auto(tmp_path).eos_token_id,))


def test_older_special_tokens_map_yields_to_added_tokens_in_the_config(tmp_path: Path) -> None:
    card = save("byte_level", tmp_path, added_tokens_decoder={"0": {"content": "<|endoftext|>", "special": True}})
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": "<|endoftext|>"}')
    assert load_tokenizer(card).eos_ids == (2,) == (auto(tmp_path).eos_token_id,)


@pytest.mark.parametrize(
    "stated",
    [{"eos_token": 7}, {"eos_token": {"lstrip": True}}, {"added_tokens_decoder": ["x"]}, {"added_tokens_decoder": {"x": {"content": "y"}}},
     {"extra_special_tokens": 3}, {"chat_template": 5}, {"chat_template": [{"name": "default"}]}],
)  # fmt: skip
def test_a_config_that_cannot_be_right_is_refused_with_the_file_name(stated: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"tokenizer_config\.json") as raised:
        load_tokenizer(save("byte_level", tmp_path, **stated))
    assert raised.value.reason == "tokenizer_config_invalid"


# --- ends of an answer


def test_eos_ids_are_the_union_with_the_tokenizers_own_first(tmp_path: Path) -> None:
    save("byte_level", tmp_path)
    tokenizer = load_tokenizer(card_for(tmp_path, {"eos_token_id": 5}, {"eos_token_id": [0, 2, 7]}))
    assert tokenizer.eos_ids == (2, 0, 7, 5)
    assert load_tokenizer(card_for(tmp_path, {"eos_token_id": None}, {"eos_token_id": 2})).eos_ids == (2,)
    assert load_tokenizer(card_for(tmp_path, {"eos_token_id": [True, -1, "x", 9]})).eos_ids == (2, 9)


def test_vocabulary_larger_than_the_model_is_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    card = save("byte_level", tmp_path, {"vocab_size": 100})
    with caplog.at_level(logging.WARNING):
        tokenizer = load_tokenizer(card)
    assert f"has {tokenizer.vocab_size} tokens and the model 100" in tokenizer.notes[0]
    assert tokenizer.notes[0] in caplog.text
    assert load_tokenizer(save("byte_level", tmp_path, {"vocab_size": tokenizer.vocab_size})).notes == ()


# --- where the files are


def test_no_tokenizer_lists_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"tokenizer\.json.*tokenizer\.model.*vocab\.json \+ merges\.txt.*--tokenizer") as raised:
        load_tokenizer(card_for(tmp_path))
    assert raised.value.reason == "tokenizer_missing"


def test_another_tokenizer_by_folder_and_by_file(tmp_path: Path) -> None:
    card = save("byte_level", tmp_path / "model")
    save("llama", tmp_path / "other")
    expected = load_tokenizer(card_for(tmp_path / "other")).encode("The dog")
    assert load_tokenizer(card, str(tmp_path / "other")).encode("The dog") == expected
    assert load_tokenizer(card, str(tmp_path / "other" / "tokenizer.json")).encode("The dog") == expected
    with pytest.raises(ArtifactError) as raised:
        load_tokenizer(card, str(tmp_path / "nowhere"))
    assert raised.value.reason == "tokenizer_missing"


def test_vocab_and_merges_files_load_as_in_transformers(tmp_path: Path) -> None:
    state = json.loads(trained("byte_level"))["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(state["vocab"]))
    (tmp_path / "merges.txt").write_text("\n".join(" ".join(merge) for merge in state["merges"]))
    stated = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
    tokenizer = load_tokenizer(card_for(tmp_path, {"model_type": "gpt2"}))
    theirs = auto(tmp_path)
    for text in TEXTS:
        assert tokenizer.encode(text) == theirs.encode(text), text
    assert tokenizer.byte_exact
    assert tokenizer.eos_ids == (0,)


def test_vocab_txt_loads_as_in_transformers(tmp_path: Path) -> None:
    vocab = json.loads(trained("wordpiece"))["model"]["vocab"]
    (tmp_path / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.get)))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    tokenizer = load_tokenizer(card_for(tmp_path, {"model_type": "bert"}))
    assert tokenizer.encode("The Lazy dog") == auto(tmp_path).encode("The Lazy dog")
    assert tokenizer.special_tokens["cls_token"] == "[CLS]"


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "tokenizer.model").write_bytes(b"\x0a\x00")
    with pytest.raises(ArtifactError, match=r"tokenizer\.model.*pip install sentencepiece protobuf") as raised:
        load_tokenizer(card_for(tmp_path))
    assert raised.value.reason == "tokenizer_needs_package"


def test_a_package_that_transformers_misses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ImportError("\nBertTokenizer requires the xyz library\n")

    (tmp_path / "vocab.txt").write_text("[UNK]")
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", refuse)
    with pytest.raises(ArtifactError, match="requires the xyz library") as raised:
        load_tokenizer(card_for(tmp_path))
    assert raised.value.reason == "tokenizer_needs_package"


def test_only_a_sentencepiece_model(tmp_path: Path) -> None:
    """With the packages that read it the model loads; without them the error names them."""
    stated = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
    if find_spec("sentencepiece") is None or find_spec("google") is None:
        (tmp_path / "tokenizer.model").write_bytes(b"\x0a\x00")
        with pytest.raises(ArtifactError) as raised:
            load_tokenizer(card_for(tmp_path))
        assert raised.value.reason == "tokenizer_needs_package"
        return
    sentencepiece = importlib.import_module("sentencepiece")
    options = {"vocab_size": 400, "model_type": "bpe", "byte_fallback": True, "character_coverage": 0.99, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_prefix=str(tmp_path / "tokenizer"), **options)
    tokenizer, theirs = load_tokenizer(card_for(tmp_path)), auto(tmp_path)
    for text in TEXTS:
        assert tokenizer.encode(text) == theirs.encode(text), text
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.adds_bos, tokenizer.byte_exact) == (1, (2,), True, True)


def test_code_in_the_folder_is_never_run(tmp_path: Path) -> None:
    shutil.copy(Path(__file__), tmp_path / "tokenization_evil.py")
    (tmp_path / "tokenization_evil.py").write_text("raise SystemExit('ran')")
    (tmp_path / "tokenizer.model").write_bytes(b"not a model")
    stated = {"tokenizer_class": "EvilTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_evil.EvilTokenizer", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
    with pytest.raises(ArtifactError):
        load_tokenizer(card_for(tmp_path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [("{", "tokenizer_invalid"), ('{"model": 3}', "tokenizer_invalid"), ("", "empty_file"),
     ("version https://git-lfs.github.com/spec/v1\nsize 12345\n", "lfs_pointer"), ("<!DOCTYPE html>", "html_page")],
)  # fmt: skip
def test_a_broken_tokenizer_json_is_named(content: str, reason: str, tmp_path: Path) -> None:
    card = save("byte_level", tmp_path)
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"tokenizer\.json") as raised:
        load_tokenizer(card)
    assert raised.value.reason == reason


def test_loading_does_not_import_transformers(tmp_path: Path) -> None:
    save("byte_level", tmp_path, chat_template="{{ messages[0].content }}")
    script = (
        "import sys; from pathlib import Path; from tests.artifacts.trained_tokenizers import card_for\n"
        "from headway.artifacts.tokenizer import load_tokenizer\n"
        f"t = load_tokenizer(card_for(Path({str(tmp_path)!r})))\n"
        "assert t.render_chat([{'role': 'user', 'content': 'hi'}]) == 'hi'\n"
        "assert 'transformers' not in sys.modules and 'torch' not in sys.modules\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, env={"PYTHONPATH": f"{root}:{root / 'src'}", "PATH": ""})


# --- text and ids from outside


def test_a_lone_surrogate_is_the_fault_of_the_request(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save("byte_level", tmp_path))
    with pytest.raises(RequestError, match="lone surrogate"):
        tokenizer.encode("ok \ud800 no")


@pytest.mark.parametrize("kind", ["byte_level", "llama", "wordpiece"])
def test_ids_outside_of_the_vocabulary_are_empty(kind: str, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save(kind, tmp_path))
    for outside in (-1, tokenizer.vocab_size, 2**40):
        assert tokenizer.token_bytes(outside) == b""
        assert tokenizer.token_text(outside) == ""
        assert tokenizer.decode([outside]) == ""


def test_text_of_single_tokens(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save("byte_level", tmp_path))
    whole, half = tokenizer.encode(" the", add_special_tokens=False), tokenizer.encode("é", add_special_tokens=False)
    assert [tokenizer.token_text(i) for i in whole] == [" the"]
    assert b"".join(tokenizer.token_bytes(i) for i in half) == "é".encode()
    assert tokenizer.token_text(tokenizer.backend.token_to_id("Ã")) == "\ufffd"
    assert tokenizer.token_text(2) == "<|im_end|>"
    llama = load_tokenizer(save("llama", tmp_path / "llama"))
    assert [llama.token_bytes(i) for i in llama.encode("the", add_special_tokens=False)] == [b" the"]
    assert llama.token_bytes(llama.backend.token_to_id("<0xE4>")) == b"\xe4"
    wordpiece = load_tokenizer(save("wordpiece", tmp_path / "wordpiece"))
    assert not wordpiece.byte_exact
    assert wordpiece.token_text(wordpiece.backend.token_to_id("the")) == "the"


def test_hf_gives_the_same_tokenizer(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save("llama", tmp_path, chat_template="{{ bos_token }}x"))
    theirs = tokenizer.hf()
    assert theirs.encode("The dog") == tokenizer.encode("The dog")
    assert theirs is tokenizer.hf()
    assert theirs.chat_template == "{{ bos_token }}x"


def test_tokens_added_with_flags_keep_them(tmp_path: Path) -> None:
    flags = {"content": "<|im_end|>", "special": True, "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}
    tokenizer = load_tokenizer(save("byte_level", tmp_path, added_tokens_decoder={"2": flags}))
    token: AddedToken = tokenizer.backend.get_added_tokens_decoder()[2]
    assert token.lstrip
    assert tokenizer.encode("a  <|im_end|>") == auto(tmp_path).encode("a  <|im_end|>")
