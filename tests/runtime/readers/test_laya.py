"""Option markers, against answers that the package `laya` gave about the same fixture (`record_laya.py`)."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from headway.artifacts.tokenizer import tokenizer_at
from headway.decisions.answers import softmax
from headway.decisions.question import Subject
from headway.decisions.reader import QuestionPlan
from headway.errors import HeadwayError
from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.package import Package
from headway.runtime.readers.laya.family import LayaFamily
from headway.runtime.readers.laya.reader import LayaReader
from headway.runtime.readers.laya.sequence import LayaSequences, fitted_head
from headway.runtime.readers.laya.settings import parse_settings
from headway.runtime.row import ItemFailure
from headway.runtime.selfcheck.agreement import difference
from tests.runtime.readers.asking import answer, probabilities, question_of
from tests.runtime.readers.laya_cases import CASES, CUT, LONG, MANY
from tests.runtime.readers.spoiling import changed_json, changed_tensors, spoiled

SEED = 11
RECORDED = json.loads((Path(__file__).parent / "recorded" / "laya.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both variants, as `record_laya.py` had them."""
    root = tmp_path_factory.mktemp("laya")
    for variant in LayaFamily().fixture_variants():
        LayaFamily().write_fixture(root / variant, variant, SEED)
    return root


def loaded(path: Path, dtype: Any = "float32", **options: Any) -> LoadedModel:
    family, package = LayaFamily(), Package(str(path), path)
    assert family.detect(package)
    return family.load(package, family.describe(package), Placement("cpu", dtype, False, options), lambda done, total: None)


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedModel:
    return loaded(folder / "laya")


def test_the_fixture_is_the_one_that_was_asked(folder: Path) -> None:
    for name, digest in RECORDED["fixture"].items():
        assert hashlib.sha256((folder / "laya" / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("case", range(len(CASES)))
def test_answers_are_those_of_the_package(model: LoadedModel, case: int) -> None:
    found, expected = answer(model, *CASES[case]), RECORDED["answers"][case]
    assert np.abs(probabilities(found) - probabilities(expected)).max() <= 1e-4
    assert found["x_act_probability"] == pytest.approx(expected["action"]["act_probability"], abs=1e-3)


@pytest.mark.parametrize("case", range(len(CUT)))
def test_what_may_be_cut_is_cut_where_the_package_cuts(model: LoadedModel, case: int) -> None:
    found, expected = answer(model, *CUT[case], truncate=True), RECORDED["answers"][len(CASES) + case]
    assert np.abs(probabilities(found) - probabilities(expected)).max() <= 1e-4


def reader_of(path: Path, max_scan_tokens: int | None = None) -> LayaReader:
    settings = parse_settings("rl_agent_config.json", json.loads((path / "rl_agent_config.json").read_text()))
    return LayaReader(LayaSequences(tokenizer_at(path / "tokenizer"), settings), settings.temperature, max_scan_tokens)


def test_many_options_in_one_sequence_share_its_tokens(folder: Path, model: LoadedModel) -> None:
    state, given = MANY
    question = question_of(given)
    plan = reader_of(folder / "laya").plan(Subject(state), [question])[0]
    assert isinstance(plan, QuestionPlan)
    reading = plan.read(model.forward(plan.rows))
    found = softmax(reading.scores / reader_of(folder / "laya").temperature("choice", 40))
    assert np.abs(found - probabilities(RECORDED["answers"][-1])).max() <= 1e-4
    assert reading.extras["option_tokens"] == 4


@pytest.mark.parametrize(("tokens", "kept", "question"), [([57, 55], [49, 49], 30), ([28] * 4, [28] * 4, 16), ([28, 28, 28, 29], [28] * 4, 16), ([2] * 63, [2] * 63, 8)])
def test_options_are_cut_evenly_once_they_leave_the_question_less_than_16(tokens: list[int], kept: list[int], question: int) -> None:
    options = [[103] * count for count in tokens]
    head = fitted_head(101, [7] * 40, options, 102, budget=128)
    ends = [*head.markers[1:], len(head.ids) - 1]
    assert [end - start for start, end in zip(head.markers, ends, strict=True)] == kept
    assert head.ids.count(7) == question


@pytest.mark.parametrize("count", [2, 26, 255])
def test_any_number_of_options_is_answered(model: LoadedModel, count: int) -> None:
    given = {"type": "choice", "instructions": "Which?", "criteria": {f"k{i}": f"the meaning of {i}" for i in range(count)}}
    found = answer(model, "state", given)
    assert len(found["probabilities"]) == count
    assert sum(found["probabilities"].values()) == pytest.approx(1.0)
    assert found.get("x_shortlist_rounds", 1) == (1 if count <= 16 else 2)


def test_options_of_julia_are_their_descriptions(folder: Path) -> None:
    tokenizer = tokenizer_at(folder / "julia" / "tokenizer")
    settings = parse_settings("julia_config.json", json.loads((folder / "julia" / "julia_config.json").read_text()))
    builder = LayaSequences(tokenizer, settings)
    for given, texts in (
        ({"type": "choice", "instructions": "i", "criteria": {"a": "what a is", "b": None}}, ["what a is", "b"]),
        ({"type": "noul", "instructions": "i", "criteria": {"true": "it does"}}, ["false", "it does"]),
        ({"type": "score", "instructions": "i", "criteria": ["low", ""]}, ["low", "1"]),
    ):
        head = builder.head(question_of(given))
        ends = [*head.markers[1:], len(head.ids) - 1]
        assert [tokenizer.decode(head.ids[a + 1 : b]) for a, b in zip(head.markers, ends, strict=True)] == [f" {text}" for text in texts]
    assert probabilities(answer(loaded(folder / "julia"), "state", {"type": "noul", "instructions": "i"})).sum() == pytest.approx(1.0)


def test_a_long_state_is_read_in_windows_that_cover_it(folder: Path) -> None:
    reader = reader_of(folder / "laya", max_scan_tokens=4096)
    plan = reader.plan(Subject(LONG), [question_of({"type": "noul", "instructions": "Late?"})])[0]
    assert isinstance(plan, QuestionPlan)
    assert plan.complete
    assert max(len(row.token_ids) for row in plan.rows) == 256
    tokenizer = tokenizer_at(folder / "laya" / "tokenizer")
    state = tokenizer.encode(LONG, add_special_tokens=False)
    end_of_options = tokenizer.backend.token_to_id("[SEP]")
    head = plan.rows[0].token_ids.index(end_of_options, plan.rows[0].detail.at[-1]) + 1
    windows = [row.token_ids[head:-1] for row in plan.rows]
    start, joined = 0, list(windows[0])
    for window in windows[1:]:  # each one starts within the tokens of the ones before it
        start = next(at for at in range(start + 1, len(joined)) if list(window[: len(joined) - at]) == joined[at:])
        joined = joined[:start] + list(window)
    assert joined == state


def test_of_windows_the_one_decides_that_says_most(folder: Path) -> None:
    reader = reader_of(folder / "laya", max_scan_tokens=4096)
    questions = [question_of({"type": "noul", "instructions": "Late?"}), question_of({"type": "choice", "instructions": "?", "criteria": {"a": None, "b": None, "c": None}})]
    noul, choice = reader.plan(Subject(LONG), questions)
    assert isinstance(noul, QuestionPlan)
    assert isinstance(choice, QuestionPlan)
    quiet = [np.array([2.0, -2.0, 0, 0], np.float32)] * len(noul.rows)
    reading = noul.read([*quiet[:1], np.array([0.5, 0.0, 0, 0], np.float32), *quiet[2:]])
    assert reading.extras["window"]["index"] == 1  # false is likelier there, and true likelier than elsewhere
    unsure = [np.array([0.1, 0.0, 0.0, 0, 0], np.float32)] * len(choice.rows)
    reading = choice.read([*unsure[:2], np.array([0.0, 0.0, -4.0, 0, 0], np.float32), *unsure[3:-1], np.array([0.0, 3.0, 0.0, 0, 0], np.float32)])
    assert reading.extras["window"]["index"] == len(choice.rows) - 1
    assert reading.scores.tolist() == [0.0, 3.0, 0.0]


def test_over_the_scan_budget_nothing_is_read(model: LoadedModel, folder: Path) -> None:
    given = {"type": "noul", "instructions": "Late?"}
    with pytest.raises(HeadwayError, match="the state has more than 1024 tokens; nothing was read"):
        answer(model, LONG + LONG, given)
    assert answer(loaded(folder / "laya", max_scan_tokens=8192), LONG + LONG, given)["type"] == "noul"


def test_a_question_that_fills_the_sequence_fails(folder: Path) -> None:
    plan = reader_of(folder / "laya").plan(Subject("x"), [question_of({**MANY[1], "criteria": {f"k{i}": None for i in range(80)}})])[0]
    assert isinstance(plan, ItemFailure)
    assert plan.code == "max_length_exceeded"


def test_cut_instructions_do_not_count_as_the_full_input(model: LoadedModel) -> None:
    given = {"type": "noul", "instructions": "Is it so? " * 80}
    with pytest.raises(HeadwayError, match="cannot read the whole input"):
        answer(model, "state", given, require_full_input=True)


@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 1e-5), ("bfloat16", 5e-3)])
def test_rows_do_not_see_each_other(folder: Path, dtype: str, allowed: float) -> None:
    model = loaded(folder / "laya", dtype)
    rows = [row for length in (3, 17, 17, 130) for row in model.probe_rows(Random(length), length)]
    alone = [model.forward([row])[0] for row in rows]
    together = model.forward(rows)
    assert max(difference(a, b) for a, b in zip(alone, together, strict=True)) <= allowed * (1 if dtype == "float32" else 20)


_settings = partial(changed_json, "rl_agent_config.json")
_tensors = partial(changed_tensors, "model.safetensors")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_settings(option_layout="parallel"), "option layout 'parallel' is not served"),
        (_settings(head_layers=3), r"head\.layers\.2\.self_attn"),
        (_settings(head_layers=1), r"head\.layers\.1"),
        (_settings(temperature=[1.0]), "three numbers"),
        (_settings(max_len="512"), "max_len must be a number"),
        (_tensors(lambda t: t.pop("scorer.3.bias")), r"scorer\.3\.bias"),
        (_tensors(lambda t: t.pop("encoder.final_norm.weight")), r"encoder\.final_norm\.weight"),
        (_tensors(lambda t: t.update({"type_emb.weight": torch.zeros(4, 128)})), r"type_emb\.weight"),
        (_tensors(lambda t: t.update({"strange.weight": torch.zeros(4)})), r"strange\.weight"),
        (lambda copy: (copy / "tokenizer" / "tokenizer.json").unlink(), r"lacks tokenizer/tokenizer\.json"),
    ],
)
def test_damaged_packages_are_refused_before_weights_are_read(folder: Path, tmp_path: Path, change: Any, match: str) -> None:
    path = spoiled(folder / "laya", tmp_path, change)
    with pytest.raises(HeadwayError, match=match):
        LayaFamily().describe(Package("x", path))


def test_temperatures_stay_within_bounds() -> None:
    settings = parse_settings("rl_agent_config.json", {"head_layers": 2, "temperature": [9, True, 1.5], "temperature_by_options": {"choice:11+": 0.1, "noul:2": 2}})
    assert [settings.temperature("choice", n) for n in (2, 5, 11, 255)] == [5.0, 5.0, 0.5, 0.5]
    assert settings.temperature("score", 4) == 1.0
    assert settings.temperature("noul", 2) == 2.0


def test_foreign_folders_are_not_detected(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert not LayaFamily().detect(Package("x", tmp_path))
    assert not LayaFamily().detect(Package("x", tmp_path / "config.json"))
