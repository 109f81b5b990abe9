"""LLM: prompt forms, order, defaults and refusals, on a scripted core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.engine import llm as llm_module
from headway.engine.arguments import engine_config
from headway.engine.llm import LLM
from headway.engine.loading import LoadedEngine
from headway.engine.memory_use import MemoryUse
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError, ContextLengthError, NotBuiltError, RequestError
from tests.engine.byte_tokenizer import byte_tokenizer, ids
from tests.engine.scripted_core import ScriptedCore, byte_forms, say

GREEDY = SamplingParams(temperature=0, max_tokens=3)


@pytest.fixture
def world() -> ScriptedCore:
    return ScriptedCore(lambda s: s.tokens[s.num_output % s.num_prompt])  # repeats its prompt


@pytest.fixture
def llm(world: ScriptedCore, monkeypatch: pytest.MonkeyPatch) -> LLM:
    loaded = LoadedEngine(world.core, None, byte_tokenizer(), world.limits, None, {"temperature": 0.0, "top_p": 0.9}, MemoryUse(0, 0, None), byte_forms())  # type: ignore[arg-type]
    monkeypatch.setattr(llm_module, "load_engine", lambda config, observers: loaded)
    return LLM("scripted")


def test_all_prompt_forms_come_back_in_order(llm: LLM) -> None:
    prompts: list[Any] = ["abc", ids("def"), {"prompt": "ghi"}, {"prompt_token_ids": ids("jkl"), "prompt": "jkl"}]
    outputs = llm.generate(prompts, GREEDY, use_tqdm=False)
    assert [o.outputs[0].text for o in outputs] == ["abc", "def", "ghi", "jkl"]
    assert [o.prompt for o in outputs] == ["abc", None, "ghi", "jkl"]
    assert llm.generate(ids("mno"), GREEDY, use_tqdm=False)[0].outputs[0].text == "mno"
    assert llm.generate("pqr", GREEDY, use_tqdm=False)[0].outputs[0].text == "pqr"


def test_ids_may_be_integers_of_numpy(llm: LLM) -> None:
    array = np.array(ids("abc"))
    for prompt in (array, list(array), {"prompt_token_ids": array}, [array]):
        assert llm.generate(prompt, GREEDY, use_tqdm=False)[0].outputs[0].text == "abc"  # type: ignore[arg-type]


def test_parameters_for_each_prompt_and_the_callers_object_stays_as_it_was(llm: LLM) -> None:
    many = [SamplingParams(temperature=0, max_tokens=n) for n in (1, 2)]
    assert [len(o.outputs[0].token_ids) for o in llm.generate(["abc", "abc"], many, use_tqdm=False)] == [1, 2]
    kind = GREEDY.output_kind
    llm.generate("abc", GREEDY, use_tqdm=False)
    assert GREEDY.output_kind is kind
    with pytest.raises(RequestError, match="2 sampling_params for 1 prompts"):
        llm.generate(["abc"], many, use_tqdm=False)


def test_defaults_come_from_the_model(llm: LLM) -> None:
    assert llm.get_default_sampling_params().top_p == 0.9
    assert len(llm.generate("abc", use_tqdm=False)[0].outputs[0].token_ids) == 16


def test_one_bad_prompt_is_refused_before_any_is_run(llm: LLM, world: ScriptedCore) -> None:
    with pytest.raises(ContextLengthError):
        llm.generate(["abc", "x" * 1000], GREEDY, use_tqdm=False)
    for bad in (7.5, {"text": "x"}, [1, "a"], [1, True], {"prompt_token_ids": [1.5]}):
        with pytest.raises(RequestError):
            llm.generate([bad], GREEDY, use_tqdm=False)  # type: ignore[list-item]
    assert world.runner.calls == 0
    world.check_empty()


def test_an_interrupt_leaves_nothing_running(llm: LLM, world: ScriptedCore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(plan: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.runner, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            llm.generate("abc", GREEDY, use_tqdm=False)
    world.check_empty()
    assert llm.generate("abc", GREEDY, use_tqdm=False)[0].outputs[0].text == "abc"


def test_reset_prefix_cache(llm: LLM) -> None:
    llm.generate("abcdefghijkl", GREEDY, use_tqdm=False)
    assert llm.generate("abcdefghijkl", GREEDY, use_tqdm=False)[0].num_cached_tokens == 8
    assert llm.reset_prefix_cache()
    assert llm.generate("abcdefghijkl", GREEDY, use_tqdm=False)[0].num_cached_tokens == 0


def test_a_script_that_ends_by_itself() -> None:
    world = ScriptedCore(say("ok"))
    world.add("a", max_tokens=10)
    assert world.run()["a"][-1].outputs[0].text == "ok"


def test_unknown_and_unbuilt_arguments_are_named() -> None:
    with pytest.raises(ConfigError, match="max_model_len"):
        LLM("x", max_model_length=5)
    with pytest.raises(NotBuiltError):
        LLM("x", enable_expert_parallel=True)
    with pytest.raises(ConfigError, match="block_size must be at least 1"):
        LLM("x", block_size=0)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("max_model_len", "x"), ("max_model_len", 64.5), ("seed", "x"), ("seed", 2**63), ("kv_cache_memory_bytes", "4 loads"), ("max_num_seqs", True),
        ("gpu_memory_utilization", "x"), ("gpu_memory_utilization", float("nan")), ("model", None), ("model", 5),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_type_or_size_are_refused_by_name(param: str, value: object) -> None:
    with pytest.raises(ConfigError, match=param) as caught:
        engine_config(**{"model": "x", "arguments": {param: value}} if param != "model" else {"model": value, "arguments": {}})  # type: ignore[arg-type]
    assert caught.value.param == param


def test_texts_mean_what_they_mean_on_the_command_line() -> None:
    config = engine_config("x", {"max_model_len": "auto", "kv_cache_memory_bytes": "4GiB", "served_model_name": "one", "hf_overrides": '{"a": {"b": 1}}'})
    assert (config.max_model_len, config.kv_cache_memory_bytes, config.served_model_name) == (-1, 4 << 30, ("one",))
    assert config.hf_overrides == {"a": {"b": 1}}
    assert engine_config("x", {"max_model_len": "4k", "tokenizer": Path("folder")}).max_model_len == 4000
    assert engine_config("x", {"tokenizer": Path("folder")}).tokenizer == "folder"


def test_a_model_may_be_a_path() -> None:
    assert engine_config(Path("folder") / "model.gguf", {}).model == str(Path("folder") / "model.gguf")


@pytest.mark.parametrize("prompts", [None, 5, b"abc", [None], {1: 2, "a": 3}, {"prompt_token_ids": 5}, {"prompt_token_ids": ["a"]}, {"prompt_token_ids": "ab"}])
def test_what_is_no_prompt_is_refused(llm: LLM, world: ScriptedCore, prompts: Any) -> None:
    with pytest.raises(RequestError):
        llm.generate(prompts, GREEDY, use_tqdm=False)
    world.check_empty()


@pytest.mark.parametrize(
    ("param", "wrong"),
    [("sampling_params", 5), ("sampling_params", "x"), ("sampling_params", [None]), ("priority", 5), ("priority", ["x"]), ("priority", [1, 2])],
)
def test_parameters_of_the_wrong_type_are_refused_by_name(llm: LLM, param: str, wrong: Any) -> None:
    given: dict[str, Any] = {"sampling_params": GREEDY} | {param: wrong}
    with pytest.raises(RequestError) as caught:
        llm.generate(["abc"], use_tqdm=False, **given)
    assert caught.value.param == param


TEMPLATE = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"


def test_chat_takes_text_parts_and_several_talks(llm: LLM) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "yes"}, {"type": "text", "text": "no"}]}]
    talks = [parts, ({"role": "user", "content": "abc"},)]
    assert [o.prompt for o in llm.chat(talks, GREEDY, use_tqdm=False, chat_template=TEMPLATE)] == ["user:yes\nno;", "user:abc;"]
    assert llm.chat(parts, GREEDY, use_tqdm=False, chat_template=TEMPLATE)[0].prompt == "user:yes\nno;"


@pytest.mark.parametrize(
    "messages",
    [None, 5, "hi", [None], [5], [{}], [[]], [{"role": "user", "content": 5}], [{"role": "user", "content": "a"}, None], [{"role": "x", "content": "a"}]],
)
def test_what_are_no_messages_is_refused(llm: LLM, messages: Any) -> None:
    with pytest.raises(RequestError):
        llm.chat(messages, GREEDY, use_tqdm=False, chat_template=TEMPLATE)


@pytest.mark.parametrize("variables", [5, {"messages": []}, {"conversation": []}, {1: 2}])
def test_template_variables_cannot_replace_fields(llm: LLM, variables: Any) -> None:
    with pytest.raises(RequestError) as caught:
        llm.chat([{"role": "user", "content": "a"}], GREEDY, use_tqdm=False, chat_template=TEMPLATE, chat_template_kwargs=variables)
    assert caught.value.param == "chat_template_kwargs"


def test_methods_of_vllm_that_are_not_built_say_so(llm: LLM) -> None:
    with pytest.raises(NotBuiltError, match=r"LLM\.reward is not built yet"):
        llm.reward("x")
    with pytest.raises(AttributeError):
        llm.no_such_method()
