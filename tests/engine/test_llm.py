"""LLM: prompt forms, order, defaults and refusals, on a scripted core."""

from __future__ import annotations

from typing import Any

import pytest

from headway.engine import llm as llm_module
from headway.engine.llm import LLM
from headway.engine.loading import LoadedEngine
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError, ContextLengthError, NotBuiltError, RequestError
from tests.engine.byte_tokenizer import byte_tokenizer, ids
from tests.engine.scripted_core import ScriptedCore, say

GREEDY = SamplingParams(temperature=0, max_tokens=3)


@pytest.fixture
def world() -> ScriptedCore:
    return ScriptedCore(lambda s: s.tokens[s.num_output % s.num_prompt])  # repeats its prompt


@pytest.fixture
def llm(world: ScriptedCore, monkeypatch: pytest.MonkeyPatch) -> LLM:
    loaded = LoadedEngine(world.core, None, byte_tokenizer(), world.limits, None, {"temperature": 0.0, "top_p": 0.9})  # type: ignore[arg-type]
    monkeypatch.setattr(llm_module, "load_engine", lambda config, observers: loaded)
    return LLM("scripted")


def test_all_prompt_forms_come_back_in_order(llm: LLM) -> None:
    prompts: list[Any] = ["abc", ids("def"), {"prompt": "ghi"}, {"prompt_token_ids": ids("jkl"), "prompt": "jkl"}]
    outputs = llm.generate(prompts, GREEDY, use_tqdm=False)
    assert [o.outputs[0].text for o in outputs] == ["abc", "def", "ghi", "jkl"]
    assert [o.prompt for o in outputs] == ["abc", None, "ghi", "jkl"]
    assert llm.generate(ids("mno"), GREEDY, use_tqdm=False)[0].outputs[0].text == "mno"
    assert llm.generate("pqr", GREEDY, use_tqdm=False)[0].outputs[0].text == "pqr"


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
    for bad in (7.5, {"text": "x"}, [1, "a"]):
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
        LLM("x", tensor_parallel_size=2)
    with pytest.raises(ConfigError, match="block_size must be at least 1"):
        LLM("x", block_size=0)


def test_methods_of_vllm_that_are_not_built_say_so(llm: LLM) -> None:
    with pytest.raises(NotBuiltError, match=r"LLM\.embed is not built yet"):
        llm.embed("x")
    with pytest.raises(AttributeError):
        llm.no_such_method()


def test_lora_is_refused(llm: LLM) -> None:
    with pytest.raises(NotBuiltError):
        llm.generate("abc", GREEDY, use_tqdm=False, lora_request=object())
