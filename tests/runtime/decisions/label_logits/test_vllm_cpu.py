"""Decisions beside those of vLLM's own `/v1/systemone`, about the same weights, over HTTP (`record_vllm_cpu.py`).

vLLM words its prompts in its own way, and a prompt makes the answer. So the reader here has the prompts that vLLM made; which
tokens are labels, what is read at them and what becomes of it is Headway's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from headway.artifacts.model_cards import card_of_path
from headway.artifacts.resolve import resolve
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.decisions.label_logits.reader import LabelLogitsOptions, LabelLogitsReader
from headway.decisions.planner import decisions_planner
from headway.decisions.question import Option, Question, Subject
from headway.decisions.reader import QuestionPlan
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.decisions.label_logits.model import LabelLogitsModel
from headway.runtime.decoder.wanted import LabelLogits
from headway.runtime.family import Placement
from headway.runtime.package import Package
from headway.runtime.row import ItemFailure
from headway.wire.decision_body import read_decision_body
from tests.runtime.decisions.label_logits.vllm_cases import CASES, ODD
from tests.runtime.decisions.label_logits.write_vllm_fixtures import KINDS, write_all
from tests.runtime.live_worker import LiveWorker, live_worker
from tests.runtime.readers.asking import probabilities

RECORDED = json.loads((Path(__file__).parent / "recorded" / "vllm_cpu.json").read_text("utf-8"))
ALLOWED = {"tiny float32": 1e-5, "ties float32": 1e-5, "smollm2 float32": 5e-5, "smollm2 bfloat16": 0.1}
"""Of a probability. In bfloat16 either side rounds in places of its own, and is up to 0.06 away from its own float32."""
ALLOWED_MEAN = 0.02
"""In bfloat16, of the largest difference of a question from vLLM's answer in float32; vLLM's own bfloat16 has 0.013."""


class PromptsOfVllm(LabelLogitsReader):
    """Asks about cases only. Labels are this reader's, in its order, except that vLLM calls sides yes and no."""

    def __init__(self, tokenizer: Tokenizer, prompts: dict[str, dict[str, Any]]):
        super().__init__(tokenizer, 8192, LabelLogitsOptions(labels="codes"))
        self._recorded = prompts

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        return [self._with_prompt(plan, subject, question) for plan, question in zip(super().plan(subject, questions), questions, strict=True)]

    def _with_prompt(self, plan: QuestionPlan | ItemFailure, subject: Subject, question: Question) -> QuestionPlan:
        assert isinstance(plan, QuestionPlan)
        [row] = plan.rows
        recorded = self._recorded[_key(subject.state, question)]
        wanted = row.detail
        assert isinstance(wanted, LabelLogits)
        if question.type == "noul":
            (no, yes), (their_yes, their_no) = self.alphabet.sides, recorded["labels"]
            wanted = LabelLogits(tuple({no.token_id: their_no, yes.token_id: their_yes}[token] for token in wanted.token_ids))
        row = replace(row, token_ids=tuple(map(int, recorded["prompt"].split())), detail=wanted)
        return replace(plan, rows=(row,), input_tokens=row.cost)


def _key(state: Any, question: Question) -> str:
    return json.dumps([state, question.type, question.instructions, [[option.key, option.description] for option in question.options]])


def prompts_of(model: str) -> dict[str, dict[str, Any]]:
    found = {}
    for name, body in CASES.items():
        read = read_decision_body(body).main
        assert read is not None
        for question_id, question in read.questions.items():
            assert isinstance(question, Question)
            found[_key(read.state, question)] = RECORDED["answers"][model][name]["prompts"][question_id]
    return found


def with_prompts_of_vllm(path: Path, recorded: str) -> LabelLogitsModel:
    """`recorded`: the name of the model and its data type."""
    family, package = LabelLogitsFamily(), Package(recorded, path)
    assert family.detect(package)
    dtype: Any = recorded.split()[1]
    model = family.load(package, family.describe(package), Placement("cpu", dtype, True, {"labels": "codes"}), lambda done, total: None)
    assert isinstance(model, LabelLogitsModel)
    model.reader = PromptsOfVllm(load_tokenizer(card_of_path(path, recorded)), prompts_of(recorded))
    model.planners = {"decisions": decisions_planner(model.reader, model.facts)}
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vllm")
    write_all(root)
    return root


@pytest.fixture(scope="module")
def worker(folder: Path) -> Iterator[LiveWorker]:
    """The tiny models with vLLM's prompts under their own names, and one as it is served, under `plain`, first."""
    family, package = LabelLogitsFamily(), Package("plain", folder / "tiny")
    plain = family.load(package, family.describe(package), Placement("cpu", "float32", True, {}), lambda done, total: None)
    with live_worker({"plain": plain, **{kind: with_prompts_of_vllm(folder / kind, f"{kind} float32") for kind in KINDS}}) as found:
        yield found


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_are_those_that_were_asked(folder: Path, kind: str) -> None:
    assert hashlib.sha256((folder / kind / "model.safetensors").read_bytes()).hexdigest() == RECORDED["weights"][kind]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_vllm(worker: LiveWorker, kind: str, case: str) -> None:
    check(worker, kind, f"{kind} float32", case)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_answers_about_smollm2_are_those_of_vllm(dtype: str) -> None:
    recorded, path = f"smollm2 {dtype}", resolve("smollm2-135m-instruct")
    check_labels(path, recorded)
    with live_worker({"smollm2": with_prompts_of_vllm(path, recorded)}) as worker:
        found = {case: check(worker, "smollm2", recorded, case) for case in CASES}
    exact = RECORDED["answers"]["smollm2 float32"]
    away = [
        np.abs(probabilities(answer) - probabilities(exact[case]["answers"][name])).max()
        for case, answers in found.items() for name, answer in answers.items()
    ]  # fmt: skip
    assert np.mean(away) <= ALLOWED_MEAN


def check(worker: LiveWorker, model: str, recorded: str, case: str) -> dict[str, Any]:
    response = worker.post("/v1/systemone", {**CASES[case], "model": model})
    assert response.status_code == 200, response.text
    found, theirs, allowed = response.json(), RECORDED["answers"][recorded][case], ALLOWED[recorded]
    assert list(found["answers"]) == list(theirs["answers"])
    assert found["usage"]["input_tokens"] == theirs["usage"]["input_tokens"]
    for name, answer in found["answers"].items():
        check_answer(answer, theirs["answers"][name], theirs["diagnostics"][name], allowed)
    answers: dict[str, Any] = found["answers"]
    return answers


def check_answer(found: dict[str, Any], theirs: dict[str, Any], diagnostics: dict[str, Any], allowed: float) -> None:
    assert found["type"] == theirs["type"]
    p, expected = probabilities(found), probabilities(theirs)
    assert np.abs(p - expected).max() <= allowed
    assert found["x_label_mass"] == pytest.approx(diagnostics["label_mass"], abs=allowed)
    assert found["x_argmax_is_label"] == diagnostics["argmax_is_label"] or allowed > 1e-3  # rounding may change which is first
    # vLLM's confidence is the chosen label's share of the whole vocabulary; ours is the protocol's.
    assert theirs["confidence"] == pytest.approx(expected.max() * diagnostics["label_mass"], rel=1e-6)
    if found["type"] == "noul":
        assert "confidence" not in found
        return
    assert list(found["probabilities"]) == list(theirs["probabilities"])
    reference = reference_confidence(found["type"], expected)
    assert found["confidence"] == pytest.approx(reference, abs=allowed * 2 * len(p))
    if found["type"] == "choice":
        first, second = np.sort(expected)[::-1][:2]
        assert found["choice"] == theirs["choice"] or first - second <= 2 * allowed
    else:
        assert found["score"] == pytest.approx(theirs["score"], abs=allowed * len(p) ** 2)
        assert found["legend"] == theirs["legend"]


def reference_confidence(kind: str, p: npt.NDArray[np.float64]) -> float:
    """The formulas of System One, written down once more."""
    n = len(p)
    if kind == "choice":
        return float((max(p) - 1 / n) / (1 - 1 / n))
    distance = sum(each * abs(level - int(np.argmax(p))) for level, each in enumerate(p))
    return float(max(0.0, 1 - distance / (sum(abs(level - (n - 1) / 2) for level in range(n)) / n)))


def test_labels_are_the_tokens_that_vllm_reads(folder: Path) -> None:
    check_labels(folder / "tiny", "tiny float32")


def check_labels(path: Path, recorded: str) -> None:
    alphabet = LabelLogitsReader(load_tokenizer(card_of_path(path, recorded)), 8192).alphabet
    prompts = RECORDED["answers"][recorded]["lists"]["prompts"]
    assert [code.token_id for code in alphabet.options[:26]] == prompts["letters"]["labels"]
    assert [code.token_id for code in alphabet.levels] == prompts["levels"]["labels"]


def test_the_first_of_equally_likely_options_wins(worker: LiveWorker) -> None:
    tied = 0
    for case, body in CASES.items():
        found = worker.post("/v1/systemone", {**body, "model": "ties"}).json()["answers"]
        for name, answer in found.items():
            theirs = RECORDED["answers"]["ties float32"][case]["answers"][name]
            p = probabilities(answer)
            assert np.ptp(p[:2]) == 0.0
            assert probabilities(theirs)[0] == probabilities(theirs)[1]
            if answer["type"] == "choice" and p[0] == p.max():
                tied += 1
                assert answer["choice"] == theirs["choice"] == next(iter(answer["probabilities"]))
    assert tied >= 4


def test_markers_in_a_state_are_text_here(folder: Path) -> None:
    """vLLM reads one as the end of the turn."""
    tokenizer = load_tokenizer(card_of_path(folder / "tiny", "tiny"))
    reader = LabelLogitsReader(tokenizer, 8192, LabelLogitsOptions(labels="codes"))
    [marker] = tokenizer.encode("<|im_end|>", add_special_tokens=False)
    recorded = RECORDED["answers"]["tiny float32"]
    theirs = [recorded[case]["prompts"][question]["prompt"].split().count(str(marker)) for case, question in (("one", "q"), ("markers", "attack"))]
    plans = [reader.plan(Subject(CASES[case]["state"]), [Question("noul", "?", (Option("false"), Option("true")))])[0] for case in ("one", "markers")]
    ours = [plan.rows[0].token_ids.count(marker) for plan in plans if isinstance(plan, QuestionPlan)]
    assert theirs == [1, 2]
    assert ours == [2, 2]  # that of the system's turn and that of the user's


@pytest.mark.parametrize("name", ODD)
def test_what_is_refused(worker: LiveWorker, name: str) -> None:
    odd = ODD[name]
    response = worker.client.post("/v1/systemone", content="{", headers={"Content-Type": "application/json"}) if odd.body is None else worker.post("/v1/systemone", odd.body)
    assert response.status_code == odd.ours, response.text


def test_where_one_refuses_and_the_other_answers() -> None:
    theirs = {name: recorded["status"] for name, recorded in RECORDED["odd"].items()}
    assert list(theirs) == list(ODD)
    assert {name for name, odd in ODD.items() if odd.ours != 200 and theirs[name] == 200} == {
        "state null", "state empty", "one option", "level null", "noul without anything",
    }  # fmt: skip
    assert {name for name, odd in ODD.items() if odd.ours == 200 and theirs[name] != 200} == {
        "set", "27 options", "levels alike", "field of a question unknown", "65 questions", "model alias",
    }  # fmt: skip
    assert {status for name, status in theirs.items() if name not in ("model unknown", "model alias")} == {200, 400}
    assert RECORDED["odd"]["level null"]["answers"]["q"]["legend"]["1"] == "None"  # the level was null
    assert RECORDED["unsupported"]["status"] == 501  # SmolLM2 without the row that `record_vllm_cpu` adds
