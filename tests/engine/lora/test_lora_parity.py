"""Greedy answers with several adapters side by side, equal to PEFT's on transformers, however the work is cut up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headway import LLM, LoRARequest, SamplingParams
from headway.engine.beam_search import BeamSearchParams
from headway.engine.core import Observers
from headway.engine.outputs import RequestOutput
from headway.errors import AdapterError, ConfigError, NotBuiltError, RequestError
from headway.models.lora.adapter_settings import CONFIG
from headway.telemetry.stats import StepStats
from tests.engine.test_parity import BASE, COUNT, WAYS, complete_tiny_model, ids
from tests.models.lora.peft_adapters import PeftAdapter, make_adapter
from tests.models.tiny_models import TinyModel

GREEDY = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
PROMPTS: list[Any] = [{"prompt_token_ids": [(length * 31 + 7 * k) % 150 + 5 for k in range(length)]} for length in (3, 17, 40)]
RANKS = (4, 16, 64)


@dataclass
class World:
    tiny: TinyModel
    adapters: list[PeftAdapter]

    def request(self, number: int) -> LoRARequest:
        return LoRARequest(f"adapter-{number}", number + 1, str(self.adapters[number].folder))

    def wanted(self, prompt: Any, adapter: int | None) -> list[int]:
        source = self.tiny if adapter is None else self.adapters[adapter]
        return source.greedy(prompt["prompt_token_ids"], COUNT)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("lora")
    tiny = complete_tiny_model("qwen2", root)
    return World(tiny, [make_adapter(tiny.oracle, root / f"a{rank}", seed=rank, rank=rank) for rank in RANKS])


def engine(world: World, **config: Any) -> LLM:
    return LLM(str(world.tiny.folder), **(BASE | {"enable_lora": True, "max_lora_rank": 64, "max_loras": 2} | config))


# Every adapter and the model itself, on every prompt.
PAIRS = [(prompt, adapter) for prompt in range(len(PROMPTS)) for adapter in (None, 0, 1, 2)]


@pytest.fixture(scope="module")
def answers(world: World) -> list[list[int]]:
    found = [world.wanted(PROMPTS[p], a) for p, a in PAIRS]
    assert len({tuple(each) for each in found}) == len(PAIRS), "adapters that change nothing prove nothing"
    return found


def test_with_drafts(world: World, answers: list[list[int]]) -> None:
    """Rows of drafts take the adapter of their sequence."""
    steps: list[StepStats] = []
    drafts = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 3}
    llm = engine(world, observers=Observers(on_step=steps.append), speculative_config=drafts)
    prompts, requests = [PROMPTS[p] for p, _ in PAIRS], [None if a is None else world.request(a) for _, a in PAIRS]
    assert ids(llm.generate(prompts, GREEDY, use_tqdm=False, lora_request=requests)) == answers
    assert sum(proposed for step in steps for proposed, _ in step.drafts) > 0


def test_after_sleep(world: World, answers: list[list[int]]) -> None:
    """Adapters are kept at level 1; level 2 would forget them."""
    llm = engine(world, enable_sleep_mode=True)
    prompts, requests = [PROMPTS[p] for p, _ in PAIRS], [None if a is None else world.request(a) for _, a in PAIRS]
    assert ids(llm.generate(prompts, GREEDY, use_tqdm=False, lora_request=requests)) == answers
    llm.sleep(1)
    llm.wake_up()
    with pytest.raises(RequestError, match="adapters are loaded"):
        llm.sleep(2)
    assert ids(llm.generate(prompts, GREEDY, use_tqdm=False, lora_request=requests)) == answers


@pytest.mark.parametrize("way", list(WAYS))
def test_greedy_equals_peft(world: World, answers: list[list[int]], way: str) -> None:
    steps: list[StepStats] = []
    llm = engine(world, observers=Observers(on_step=steps.append), **WAYS[way])
    prompts, requests = [PROMPTS[p] for p, _ in PAIRS], [None if a is None else world.request(a) for _, a in PAIRS]
    found = llm.generate(prompts, GREEDY, use_tqdm=False, lora_request=requests)
    assert ids(found) == answers
    assert [o.lora_request for o in found] == [o.outputs[0].lora_request for o in found] == requests
    assert ids(llm.generate(prompts, GREEDY, use_tqdm=False, lora_request=requests)) == answers
    together = max(len(s.adapters.running) for s in steps if s.adapters)
    assert together == 2
    assert {name for s in steps if s.adapters for name in s.adapters.waiting} >= {"adapter-2"}
    registry = llm._engine.adapters
    assert registry is not None
    assert (len(registry), registry.num_kept) == (3, 2)
    if way == "preempted":
        assert sum(s.preemptions for s in steps) > 0
    if way == "prefix_cache":
        assert sum(s.prefix_hits for s in steps) > 0


def test_one_request_for_all_prompts_and_beams(world: World, answers: list[list[int]]) -> None:
    llm = engine(world)
    one: list[RequestOutput] = llm.generate(PROMPTS, GREEDY, use_tqdm=False, lora_request=world.request(1))
    assert ids(one) == [answers[PAIRS.index((p, 1))] for p in range(3)]
    params = BeamSearchParams(beam_width=1, max_tokens=5, ignore_eos=True)
    beams = llm.beam_search([PROMPTS[1], PROMPTS[1]], params, lora_request=[world.request(0), None])
    assert [b.sequences[0].tokens[17:] for b in beams] == [answers[PAIRS.index((1, a))][:5] for a in (0, None)]
    assert [b.sequences[0].lora_request for b in beams] == [world.request(0), None]


def test_an_adapter_that_was_pushed_out_is_read_again_and_must_be_the_same(world: World, tmp_path: Path, answers: list[list[int]]) -> None:
    own = make_adapter(world.tiny.oracle, tmp_path / "own", seed=9)
    llm = engine(world, max_loras=1)
    mine = LoRARequest("own", 9, str(own.folder))
    want = own.greedy(PROMPTS[0]["prompt_token_ids"], COUNT)

    def ask(*requests: LoRARequest) -> list[RequestOutput]:
        return llm.generate([PROMPTS[0]] * len(requests), GREEDY, use_tqdm=False, lora_request=list(requests))

    other = world.request(0)
    assert ids(ask(mine, other, mine)) == [want, answers[PAIRS.index((0, 0))], want]
    ask(other)
    path = own.folder / CONFIG
    path.write_text(path.read_text().replace('"lora_alpha": 7', '"lora_alpha": 9'))
    changed, fine = ask(mine, other)
    assert (changed.outputs[0].finish_reason, fine.outputs[0].finish_reason) == ("error", "length")
    assert isinstance(changed.failure, AdapterError)
    assert changed.failure.reason == "adapter_changed"
    again = ask(LoRARequest("own", 9, str(own.folder), load_inplace=True))
    assert again[0].outputs[0].token_ids != want


def test_what_is_asked_wrongly(world: World, tmp_path: Path) -> None:
    llm = engine(world, max_lora_rank=16)
    with pytest.raises(AdapterError, match="LoRA rank 64 is greater than max_lora_rank 16"):
        llm.generate(PROMPTS, GREEDY, use_tqdm=False, lora_request=world.request(2))
    with pytest.raises(RequestError, match="2 entries for 3 prompts"):
        llm.generate(PROMPTS, GREEDY, use_tqdm=False, lora_request=[None, world.request(0)])
    with pytest.raises(RequestError, match="must be LoRARequest, got str"):
        llm.generate(PROMPTS, GREEDY, use_tqdm=False, lora_request="adapter-0")  # type: ignore[arg-type]
    llm.generate(PROMPTS[:1], GREEDY, use_tqdm=False, lora_request=world.request(0))
    with pytest.raises(RequestError, match="lora_int_id 1 stands for the adapter 'adapter-0'"):
        llm.generate(PROMPTS, GREEDY, use_tqdm=False, lora_request=LoRARequest("b", 1, str(tmp_path)))
    with pytest.raises(RequestError, match="id must be > 0"):
        LoRARequest("a", 0, "x")


def test_without_lora_an_adapter_is_refused(world: World) -> None:
    llm = engine(world, enable_lora=False)
    with pytest.raises(RequestError, match="LoRA is not enabled") as raised:
        llm.generate(PROMPTS, GREEDY, use_tqdm=False, lora_request=world.request(0))
    assert raised.value.reason == "lora_disabled"


@pytest.mark.parametrize(
    ("config", "said"),
    [({"max_lora_rank": 12}, "1, 8, 16, 32"), ({"max_cpu_loras": 1}, "must be >= max_loras"), ({"batch_invariant": True}, "exclude each other"),
     ({"fully_sharded_loras": True}, "refused"), ({"lora_dtype": "float16"}, "lora_dtype must be one of")],
)  # fmt: skip
def test_flags_that_cannot_be(world: World, config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        engine(world, **config)


def test_models_that_transformers_runs_are_refused(world: World) -> None:
    with pytest.raises(NotBuiltError, match="which transformers runs"):
        engine(world, model_impl="transformers")
