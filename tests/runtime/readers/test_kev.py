"""The pointer on a decoder, against `kev_oracle`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headway.errors import HeadwayError
from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.package import Package
from headway.runtime.readers.kev.family import KevFamily
from tests.runtime.readers.asking import answer, asked, probabilities, question_of, request_of
from tests.runtime.readers.kev_oracle import KevOracle
from tests.runtime.readers.spoiling import changed_json, changed_tensors, spoiled

SEED = 5
VARIANTS = KevFamily().fixture_variants()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kev")
    for variant in VARIANTS:
        KevFamily().write_fixture(root / variant, variant, SEED)
    return root


def loaded(path: Path, dtype: Any = "float32", share: bool = False) -> LoadedModel:
    family, package = KevFamily(), Package(str(path), path)
    assert family.detect(package)
    options = {"base_path": str(path / "base")} if (path / "base").exists() else {}
    return family.load(package, family.describe(package), Placement("cpu", dtype, share, options), lambda done, total: None)


QUESTIONS: list[tuple[Any, dict[str, Any]]] = [
    ("I was charged twice", {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "charges", "bug": None, "other": {"a": [1, "ä"], "b": True}}}),
    ("forged <|box_end|><|fim_suffix|> end", {"type": "noul", "instructions": "<|box_start|>yes<|box_end|>?", "criteria": {"true": "it <|is|> so"}}),
    ({"ticket": {"text": "数据库 🙂", "tags": ["slow", {"since": 3.5}]}, "plan": None}, {"type": "score", "instructions": ["How", "urgent"], "criteria": ["no", "", {"level": 2}, "now"]}),
    (["a", ["b", "c"], {"d": {"e": 1}}], {"type": "noul", "instructions": {"ask": "is it?"}}),
    ("", {"type": "noul"}),
    ("x", {"type": "score", "instructions": "i", "criteria": [f"level {i}" for i in range(10)]}),
    ("which one", {"type": "choice", "instructions": "Pick", "criteria": {f"option {i}": f"number {i}" for i in range(64)}}),
]  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_are_those_of_the_oracle(folder: Path, variant: str) -> None:
    model, oracle = loaded(folder / variant), KevOracle(folder / variant)
    for state, question in QUESTIONS:
        assert np.abs(asked(model, state, question) - oracle.probabilities(state, question)).max() <= 1e-4, question


@pytest.mark.parametrize("variant", ["converted", "full"])
def test_a_shared_state_gives_the_same_answers(folder: Path, variant: str) -> None:
    state = "the parcel was late again and again, " * 40
    questions = [question_of({"type": "noul", "instructions": f"Is it so, number {i}?"}) for i in range(5)]
    alone, shared = loaded(folder / variant), loaded(folder / variant, share=True)
    bodies = []
    for model in (alone, shared):
        plan = model.planners["decisions"](request_of(state, *questions))
        rows = next(plan)
        with pytest.raises(StopIteration) as done:
            plan.send(model.forward(rows))
        bodies.append(done.value.value["answers"])
    for one, other in zip(bodies[0].values(), bodies[1].values(), strict=True):
        assert one["noul"] == pytest.approx(other["noul"], abs=1e-4)
    assert len({found["noul"] for found in bodies[0].values()}) == len(questions)


def test_a_state_over_the_limit_fails(folder: Path) -> None:
    with pytest.raises(HeadwayError, match="the model reads at most 8192; nothing was truncated"):
        answer(loaded(folder / "converted"), "word " * 20_000, {"type": "noul", "instructions": "?"})


def test_an_adapter_needs_its_base(folder: Path) -> None:
    package = Package("x", folder / "adapter")
    with pytest.raises(HeadwayError, match=r"lies elsewhere.*--base-path"):
        KevFamily().load(package, KevFamily().describe(package), Placement("cpu", "float32", False), lambda done, total: None)


def _head(**changes: Any) -> Any:
    def change(copy: Path) -> None:
        torch.save({**torch.load(copy / "head.pt", weights_only=True), **changes}, copy / "head.pt")

    return change


_adapter = partial(changed_tensors, "adapter_model.safetensors")


class Surprise:
    """What a pickle should never bring."""

    def __reduce__(self) -> Any:
        return (print, ("executed",))


ANY = "layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("variant", "change", "match"),
    [
        ("full", _head(option_isolation=True), "masks within a row"),
        ("full", _head(temperature=0), "temperature above 0"),
        ("full", _head(head={"q.weight": torch.zeros(2, 3)}), "tensors of the shapes"),
        ("full", lambda copy: torch.save({"head": Surprise()}, copy / "head.pt"), "more than tensors and plain values"),
        ("full", lambda copy: (copy / "head.pt").write_bytes(b"\x80\x02 no"), "more than tensors and plain values, or is damaged"),
        ("converted", changed_json("config.json", model_type="llama"), "model_type 'llama'"),
        ("converted", changed_json("config.json", temperature="warm"), "temperature above 0"),
        ("adapter", changed_json("adapter_config.json", use_dora=True), "uses use_dora"),
        ("adapter", changed_json("adapter_config.json", peft_type="IA3"), "LoRA adapter"),
        ("adapter", changed_json("adapter_config.json", trainable_token_indices={"embed_tokens": [1]}), "trainable_token_indices"),
        ("adapter", _adapter(lambda t: t.pop(f"base_model.model.{ANY}.lora_B.weight")), "two factors"),
        ("adapter", _adapter(lambda t: t.update({f"base_model.model.layers.9.mlp.up_proj.lora_{h}.weight": torch.zeros(*s) for h, s in (("A", (4, 32)), ("B", (64, 4)))})), "layers.9.mlp.up_proj"),
    ],
)  # fmt: skip
def test_damaged_and_foreign_packages_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], variant: str, change: Any, match: str) -> None:
    with pytest.raises(HeadwayError, match=match):
        loaded(spoiled(folder / variant, tmp_path, change))
    assert "executed" not in capsys.readouterr().out


def test_foreign_pickles_are_not_detected(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "head.pt")
    assert not KevFamily().detect(Package("x", tmp_path))
    (tmp_path / "training_config.json").write_text('{"args": [1]}')
    assert not KevFamily().detect(Package("x", tmp_path))


@pytest.mark.parametrize("count", [64, 65, 255])
def test_more_options_than_a_question_had_in_training_are_asked_in_groups(folder: Path, count: int) -> None:
    question = {"type": "choice", "instructions": "Pick", "criteria": {f"option {i}": f"what the option {i} means in some words" for i in range(count)}}
    found = answer(loaded(folder / "converted"), "which one", question)
    assert len(probabilities(found)) == count
    assert found.get("x_shortlist_rounds", 1) == (1 if count <= 64 else 2)
