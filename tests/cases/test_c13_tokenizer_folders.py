"""C13: tokenizer and special-token files in all their forms, each through an engine (with random weights)."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import transformers

from headway import LLM, SamplingParams
from headway.errors import ArtifactError, RequestError
from tests.artifacts.trained_tokenizers import CORPUS, trained

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 600, "max_position_embeddings": 128, "tie_word_embeddings": False,
}  # fmt: skip
TEXT = "The dog of the house"
CHAT = [{"role": "user", "content": "ab"}]


def write(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "config.json", CONFIG)
    return tmp_path


def engine(folder: Path, **arguments: Any) -> LLM:
    return LLM(folder, load_format="dummy", dtype="float32", kv_cache_memory_bytes=8 << 20, **arguments)


def answer(llm: LLM, **params: Any) -> Any:
    return llm.generate(TEXT, SamplingParams(**{"temperature": 0, "max_tokens": 20, **params}), use_tqdm=False)[0]


def test_c13_no_tokenizer_at_all(folder: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        engine(folder)
    assert caught.value.reason == "tokenizer_missing"
    for part in (str(folder), "tokenizer.json", "tokenizer.model", "vocab.json + merges.txt", "vocab.txt", "--tokenizer"):
        assert part in caught.value.message


def test_c13_only_tokenizer_model(folder: Path) -> None:
    options = {"vocab_size": 400, "model_type": "bpe", "byte_fallback": True, "character_coverage": 0.99, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_prefix=str(folder / "tokenizer"), **options)
    ids = answer(engine(folder)).prompt_token_ids
    assert ids == transformers.AutoTokenizer.from_pretrained(folder).encode(TEXT)
    assert sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model")).encode(TEXT) == ids


def test_c13_only_vocab_json_and_merges_txt(folder: Path) -> None:
    state = json.loads(trained("byte_level"))["model"]
    write(folder, "vocab.json", state["vocab"])
    write(folder, "merges.txt", "\n".join(" ".join(merge) for merge in state["merges"]))
    write(folder, "config.json", CONFIG | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"})
    llm = engine(folder)
    output = answer(llm)
    assert llm._engine.tokenizer.decode(output.prompt_token_ids) == TEXT
    assert len(output.prompt_token_ids) < len(TEXT)


def test_c13_bos_token_as_an_object(folder: Path) -> None:
    write(folder, "tokenizer.json", trained("llama"))
    described = {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    write(folder, "tokenizer_config.json", {"bos_token": described, "eos_token": described | {"content": "</s>"}, "chat_template": "{{ bos_token }}{{ messages[0].content }}"})
    llm = engine(folder)
    assert (llm._engine.tokenizer.bos_id, llm._engine.tokenizer.eos_ids) == (1, (2,))
    assert llm.chat(CHAT, SamplingParams(max_tokens=1), use_tqdm=False)[0].prompt == "<s>ab"


def test_c13_chat_template_as_a_list_of_named_templates(folder: Path) -> None:
    write(folder, "tokenizer.json", trained("llama"))
    templates = [{"name": "default", "template": "D:{{ messages[0].content }}"}, {"name": "tool_use", "template": "T:{{ messages[0].content }}"}]
    write(folder, "tokenizer_config.json", {"chat_template": templates})
    llm, one = engine(folder), SamplingParams(max_tokens=1)
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert llm.chat(CHAT, one, use_tqdm=False)[0].prompt == "D:ab"
    assert llm.chat(CHAT, one, use_tqdm=False, tools=tools)[0].prompt == "T:ab"
    assert llm.chat(CHAT, one, use_tqdm=False, chat_template="tool_use")[0].prompt == "T:ab"
    write(folder, "tokenizer_config.json", {"chat_template": templates[1:]})
    with pytest.raises(RequestError, match="tool_use") as caught:
        engine(folder).chat(CHAT, one, use_tqdm=False)
    assert caught.value.reason == "chat_template_missing"


def test_c13_eos_token_id_as_a_list(folder: Path) -> None:
    write(folder, "tokenizer.json", trained("llama"))
    written = answer(engine(folder, seed=1), ignore_eos=True).outputs[0].token_ids
    assert 2 not in written[:4]
    end = next(token for token in written[3:] if token not in written[:3])
    write(folder, "generation_config.json", {"eos_token_id": [2, end]})
    stopped = answer(engine(folder, seed=1)).outputs[0]
    assert stopped.token_ids == written[: written.index(end) + 1]
    assert stopped.finish_reason == "stop"


def test_c13_a_vocabulary_larger_than_the_embedding_matrix(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tokens without a row are refused when they are asked for, and a warning says so at the start."""
    write(folder, "tokenizer.json", trained("llama"))
    write(folder, "config.json", CONFIG | {"vocab_size": 300})
    with caplog.at_level(logging.WARNING):
        llm = engine(folder)
    assert "and the model 300: ids from 300 on cannot be used" in caplog.text
    with pytest.raises(RequestError) as caught:
        answer(llm)
    assert caught.value.reason == "token_out_of_vocabulary"
    good = llm.generate({"prompt_token_ids": [1, 5, 299]}, SamplingParams(max_tokens=8), use_tqdm=False)[0]
    assert max(good.outputs[0].token_ids) < 300


def test_c13_a_matrix_larger_than_the_vocabulary_never_yields_its_padding(folder: Path) -> None:
    write(folder, "tokenizer.json", trained("llama"))
    write(folder, "config.json", CONFIG | {"vocab_size": 20_000})
    llm = engine(folder)
    known = llm._engine.tokenizer.vocab_size
    assert known < 1_000
    for params in ({}, {"temperature": 1.0, "seed": 1}, {"temperature": 2.0, "top_p": 0.9, "seed": 2}):
        output = answer(llm, **params, logprobs=3).outputs[0]
        assert max(output.token_ids) < known
        assert max(token for position in output.logprobs for token in position) < known  # nor do beams get to see it
    with pytest.raises(RequestError):  # no such token exists
        llm.generate({"prompt_token_ids": [20_000]}, SamplingParams(max_tokens=1), use_tqdm=False)
