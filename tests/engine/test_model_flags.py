"""Flags that change what the model is: each through LLM, on seeded models, against what transformers does when told the same."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from headway import LLM, SamplingParams
from headway.engine import configured_card as configured_module
from headway.engine.config import EngineConfig
from headway.engine.configured_card import configured_card
from headway.errors import ArtifactError, CapacityError, ConfigError, NotBuiltError
from tests.engine.tiny_folder import complete_tiny_model
from tests.models.tiny_models import TinyModel

COUNT = 12
PROMPT = [(31 * k) % 150 + 5 for k in range(60)]
BASE: dict[str, Any] = {"dtype": "float32", "kv_cache_memory_bytes": 32 << 20}
GREEDY = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flags")


@pytest.fixture
def llama(root: Path) -> TinyModel:
    return complete_tiny_model("llama", root)


@pytest.fixture
def folder(llama: TinyModel, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(llama.folder, tmp_path / "model"))


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


def tokens(llm: LLM, prompt: list[int] = PROMPT) -> list[int]:
    return llm.generate({"prompt_token_ids": prompt}, GREEDY, use_tqdm=False)[0].outputs[0].token_ids


def test_a_revision_of_a_folder_is_said_to_mean_nothing(llama: TinyModel, caplog: pytest.LogCaptureFixture) -> None:
    configured_card(EngineConfig(str(llama.folder), revision="v2", tokenizer_revision="v3"))
    assert "--revision v2 has no effect" in said(caplog)
    assert "--tokenizer-revision v3 has no effect" in said(caplog)


# ---- --hf-overrides, --hf-config-path --------------------------------------------------------------------------------


def test_overrides_change_the_model_as_in_transformers(llama: TinyModel, caplog: pytest.LogCaptureFixture) -> None:
    rope = {"rope_type": "linear", "factor": 2.0}
    config = transformers.AutoConfig.from_pretrained(llama.folder)
    config.rope_parameters = {**config.rope_parameters, **rope}
    twin = transformers.AutoModelForCausalLM.from_pretrained(llama.folder, config=config, dtype=torch.float32)
    want = TinyModel("twin", llama.folder, twin).greedy(PROMPT, COUNT)
    assert want != llama.greedy(PROMPT, COUNT)
    with caplog.at_level(logging.INFO):
        assert tokens(LLM(llama.folder, hf_overrides={"rope_parameters": rope}, **BASE)) == want
    assert "--hf-overrides rope_parameters.rope_type: 'llama3' -> 'linear'" in said(caplog)


def test_overrides_come_before_everything(llama: TinyModel) -> None:
    assert LLM(llama.folder, hf_overrides={"max_position_embeddings": 64}, **BASE)._engine.limits.max_model_len == 64
    with pytest.raises(ArtifactError, match="NoSuchForCausalLM"):
        LLM(llama.folder, hf_overrides={"architectures": ["NoSuchForCausalLM"]}, **BASE)
    with pytest.raises(ArtifactError) as caught:
        LLM(llama.folder, hf_overrides={"num_hidden_layers": 5}, **BASE)
    assert caught.value.reason == "missing_tensor"


@pytest.mark.parametrize("overrides", [[1], 5, "[1]", "{", {"auto_map": {"AutoModel": "x.Y"}}])
def test_overrides_that_are_refused(llama: TinyModel, overrides: Any) -> None:
    with pytest.raises(ConfigError, match=r"hf_overrides|hf-overrides"):
        LLM(llama.folder, hf_overrides=overrides, **BASE)


def test_another_config(llama: TinyModel, tmp_path: Path) -> None:
    other = json.loads((llama.folder / "config.json").read_text()) | {"max_position_embeddings": 96}
    (tmp_path / "config.json").write_text(json.dumps(other))
    assert LLM(llama.folder, hf_config_path=str(tmp_path), **BASE)._engine.limits.max_model_len == 96


# ---- --max-model-len ---------------------------------------------------------------------------------------------------


def test_longer_than_the_model_is_refused_before_loading_unless_allowed(llama: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("headway.engine.loading.load_planned", None)  # nothing may be loaded
        with pytest.raises(ConfigError) as caught:
            LLM(llama.folder, max_model_len=512, **BASE)
    message = r"User-specified max_model_len (512) is greater than the derived max_model_len (256, from the model's configuration)"
    assert caught.value.message.startswith(message)
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" in caught.value.message
    assert caught.value.reason == "max_model_len_too_long"
    monkeypatch.setenv("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1")
    assert LLM(llama.folder, max_model_len=512, **BASE)._engine.limits.max_model_len == 512


@pytest.mark.parametrize(("blocks", "length"), [(4, 64), (100, 256)])
def test_auto_is_what_fits_and_at_most_what_the_model_has(llama: TinyModel, blocks: int, length: int) -> None:
    for spelling in ("auto", -1):
        llm = LLM(llama.folder, max_model_len=spelling, num_gpu_blocks_override=blocks, dtype="float32")
        assert llm._engine.limits.max_model_len == length


def test_frequencies_of_a_dynamic_rope_follow_the_length_that_fits(llama: TinyModel) -> None:
    """transformers scales by the length of the text; here the deployment's length counts, whatever it was asked for as."""
    overrides = {"max_position_embeddings": 32, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0}}
    fits = LLM(llama.folder, hf_overrides=overrides, max_model_len="auto", num_gpu_blocks_override=5, dtype="float32")
    assert fits._engine.limits.max_model_len == 80
    asked = LLM(llama.folder, hf_overrides=overrides, max_model_len=80, **BASE)
    whole = LLM(llama.folder, hf_overrides=overrides, **BASE)
    assert whole._engine.limits.max_model_len == 128
    assert tokens(fits) == tokens(asked) != tokens(whole)


def test_what_does_not_fit_is_refused_before_loading(llama: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.engine.loading.load_planned", None)
    with pytest.raises(CapacityError, match="--max-model-len 64"):
        LLM(llama.folder, num_gpu_blocks_override=4, dtype="float32")


def test_without_windows_the_context_is_the_window(root: Path) -> None:
    mistral = complete_tiny_model("mistral", root)
    assert LLM(mistral.folder, disable_sliding_window=True, **BASE)._engine.limits.max_model_len == 16
    with pytest.raises(ConfigError, match=r"derived max_model_len \(16"):
        LLM(mistral.folder, disable_sliding_window=True, max_model_len=32, **BASE)


# ---- sampling defaults and ends ------------------------------------------------------------------------------------------


def write_generation_config(folder: Path, **values: Any) -> None:
    (folder / "generation_config.json").write_text(json.dumps(values))


def test_sampling_defaults_of_model_folder_file_and_flag(folder: Path, tmp_path: Path) -> None:
    write_generation_config(folder, temperature=0.5, top_p=0.8, eos_token_id=[2, 7], max_new_tokens=9)
    other = tmp_path / "other"
    other.mkdir()
    write_generation_config(other, top_k=5)

    def params(**arguments: Any) -> SamplingParams:
        return LLM(folder, **BASE, **arguments).get_default_sampling_params()

    assert (params().temperature, params().top_p, params().max_tokens) == (0.5, 0.8, 9)
    assert params(generation_config="vllm") == SamplingParams()
    for place in (other, other / "generation_config.json"):
        assert params(generation_config=place) == SamplingParams(top_k=5)
    changed = params(override_generation_config={"temperature": 0.1})
    assert (changed.temperature, changed.top_p) == (0.1, 0.8)


def test_sampling_defaults_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"generation_config\.json") as caught:
        LLM(folder, generation_config=str(tmp_path / "nowhere"), **BASE)
    assert caught.value.reason == "generation_config_unreadable"
    write_generation_config(folder, temperature="hot")
    with pytest.raises(ConfigError, match="temperature") as caught:
        LLM(folder, **BASE)
    assert caught.value.reason == "generation_config_invalid"
    assert LLM(folder, generation_config="vllm", **BASE).get_default_sampling_params() == SamplingParams()
    with pytest.raises(ConfigError, match="top_p"):
        LLM(folder, generation_config="vllm", override_generation_config={"top_p": 5}, **BASE)


@pytest.mark.parametrize("how", ["auto", "vllm", "override"])
def test_all_end_ids_end_an_answer(folder: Path, llama: TinyModel, how: str) -> None:
    answer = llama.greedy(PROMPT, COUNT)
    end = answer[4]
    arguments: dict[str, Any] = {"override_generation_config": {"eos_token_id": [2, end]}} if how == "override" else {"generation_config": how}
    write_generation_config(folder, eos_token_id=[2, 3] if how == "override" else [2, end])
    output = LLM(folder, **BASE, **arguments).generate({"prompt_token_ids": PROMPT}, SamplingParams(temperature=0, max_tokens=COUNT), use_tqdm=False)[0].outputs[0]
    assert output.token_ids == answer[: answer.index(end) + 1]
    assert output.finish_reason == "stop"


# ---- weights -----------------------------------------------------------------------------------------------------------------


def test_dummy_weights_need_only_a_config_and_a_tokenizer(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ArtifactError) as caught:
        LLM(folder, **BASE)
    assert caught.value.reason == "no_weights"
    first, same, other = (tokens(LLM(folder, load_format="dummy", seed=seed, **BASE)) for seed in (0, 0, 1))
    assert first == same != other


def test_dummy_weights_replace_those_that_are_there(llama: TinyModel) -> None:
    llm = LLM(llama.folder, load_format="dummy", **BASE)
    assert tokens(llm) != llama.greedy(PROMPT, COUNT)
    assert llm._engine.capacity.weight_bytes == LLM(llama.folder, **BASE)._engine.capacity.weight_bytes


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("pt", ConfigError, "unsafe_weights"), ("npcache", ConfigError, "unsafe_weights"), ("tensorizer", NotBuiltError, "not_built"),
        ("gguf", ConfigError, "load_format_conflict"), ("nonsense", ConfigError, "invalid_config"),
    ],
)  # fmt: skip
def test_load_formats_that_are_refused(llama: TinyModel, name: str, error: type[ConfigError], reason: str) -> None:
    with pytest.raises(error) as caught:
        LLM(llama.folder, load_format=name, **BASE)
    assert (caught.value.reason, caught.value.param) == (reason, "load_format")
    assert tokens(LLM(llama.folder, load_format="safetensors", **BASE)) == llama.greedy(PROMPT, COUNT)


def test_downloads_go_to_the_folder_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def inspect(reference: str, **arguments: Any) -> None:
        seen.update(arguments, reference=reference)
        raise ArtifactError("seen")

    monkeypatch.setattr(configured_module, "inspect", inspect)
    with pytest.raises(ArtifactError, match="seen"):
        configured_card(EngineConfig("acme/tiny", revision="v2", download_dir="place"))
    assert (seen["reference"], seen["revision"], seen["cache_dir"]) == ("acme/tiny", "v2", "place")


# ---- tokenizer and template ---------------------------------------------------------------------------------------------------


def test_a_tokenizer_from_elsewhere(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "tokenizer"
    place.mkdir()
    (folder / "tokenizer.json").rename(place / "tokenizer.json")
    with pytest.raises(ArtifactError) as caught:
        LLM(folder, **BASE)
    assert caught.value.reason == "tokenizer_missing"
    for given in (place, place / "tokenizer.json"):
        assert LLM(folder, tokenizer=given, **BASE).generate("ab", GREEDY, use_tqdm=False)[0].prompt_token_ids
    with caplog.at_level(logging.INFO):
        LLM(folder, tokenizer=place, tokenizer_mode="slow", **BASE)
    assert "--tokenizer-mode slow" in said(caplog)
    with pytest.raises(ConfigError, match="tokenizer_mode must be one of"):
        LLM(folder, tokenizer=place, tokenizer_mode="mistral", **BASE)


def test_a_chat_template_for_the_engine(llama: TinyModel, tmp_path: Path) -> None:
    template = "{{ messages[0]['content'] }}!"
    (tmp_path / "template.jinja").write_text(template)
    chat = [{"role": "user", "content": "ab"}]
    for given in (template, tmp_path / "template.jinja"):
        output = LLM(llama.folder, chat_template=given, **BASE).chat(chat, GREEDY, use_tqdm=False)[0]
        assert output.prompt == "ab!"
    with pytest.raises(ConfigError, match=r"nowhere\.jinja") as caught:
        LLM(llama.folder, chat_template="nowhere.jinja", **BASE)
    assert caught.value.reason == "chat_template_unreadable"
    with pytest.raises(ConfigError, match=r"--chat-template.*cannot be compiled \(line 2\)") as caught:
        LLM(llama.folder, chat_template="{% for m in messages %}\n{{ m.content", **BASE)
    assert caught.value.reason == "chat_template_unreadable"


def test_several_names_and_the_first_is_told() -> None:
    assert EngineConfig("folder/model", served_model_name=("one", "two")).name == "one"
    assert EngineConfig("folder/model").name == "folder/model"
    for names, says in ((("one", ""), "empty"), (("one", " "), "empty"), (("one", "two", "one"), "'one' twice")):
        with pytest.raises(ConfigError, match=says):
            EngineConfig("folder/model", served_model_name=names)


def test_a_sampling_default_that_means_nothing_is_said(llama: TinyModel, caplog: pytest.LogCaptureFixture) -> None:
    given = {"tempratur": 0.5, "num_beams": 2, "temperature": 0.5, "max_new_tokens": 5, "eos_token_id": 2}
    configured_card(EngineConfig(str(llama.folder), override_generation_config=given))
    assert "--override-generation-config tempratur has no effect; did you mean temperature?" in said(caplog)
    assert "num_beams has no effect" in said(caplog)
    assert said(caplog).count("has no effect") == 2


@pytest.mark.parametrize("shards", ["20KB", "100KB"])
def test_sharded_checkpoints(llama: TinyModel, tmp_path: Path, shards: str) -> None:
    llama.oracle.save_pretrained(tmp_path / "sharded", max_shard_size=shards)
    shutil.copy(llama.folder / "tokenizer.json", tmp_path / "sharded")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 2
    assert tokens(LLM(tmp_path / "sharded", **BASE)) == llama.greedy(PROMPT, COUNT)
    assert tokens(LLM(tmp_path / "sharded", model_impl="transformers", **BASE)) == llama.greedy(PROMPT, COUNT)
