"""GGUF files with decision metadata, against answers that llama.cpp gave about the same files (`record_xllamacpp.py`)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from headway.artifacts.tokenizer import tokenizer_at
from headway.errors import HeadwayError
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.package import Package
from headway.runtime.readers.gguf_decision.family import GgufDecisionFamily
from headway.runtime.readers.gguf_decision.metadata import OTHER_KINDS, DecisionMetadata
from tests.runtime.readers.asking import answer, probabilities, question_of, request_of
from tests.runtime.readers.gguf_cases import CASES, TEMPLATES
from tests.runtime.readers.tiny_gguf import finish, write_decision_gguf
from tests.runtime.readers.write_gguf_fixtures import write_all

RECORDED = json.loads((Path(__file__).parent / "recorded" / "xllamacpp.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gguf")
    write_all(root)
    return root


def loaded(path: Path, **options: Any) -> LoadedModel:
    family, package = GgufDecisionFamily(), Package(str(path), path)
    assert family.detect(package)
    assert not LabelLogitsFamily().detect(package)
    return family.load(package, family.describe(package), Placement("cpu", "float32", False, options), lambda done, total: None)


@pytest.mark.parametrize("kind", RECORDED["answers"])
def test_the_file_is_the_one_that_was_asked(folder: Path, kind: str) -> None:
    assert hashlib.sha256((folder / f"{kind}.gguf").read_bytes()).hexdigest() == RECORDED["fixture"][kind]


@pytest.mark.parametrize("kind", RECORDED["answers"])
def test_probabilities_are_those_of_llama_cpp(folder: Path, kind: str) -> None:
    model = loaded(folder / f"{kind}.gguf")
    for (state, question), expected in zip(CASES, RECORDED["answers"][kind], strict=True):
        found = answer(model, state, question)
        if "x_shortlist_rounds" in found:  # asked in groups here, in one sequence there
            continue
        allowed = 1e-3 if kind in TEMPLATES else 1e-4  # a decoder keeps its keys and values in 16 bits there
        assert np.abs(probabilities(found) - probabilities(expected)).max() <= allowed, question
        assert (0.0 < found["x_label_mass"] < 1.0) if kind in TEMPLATES else ("x_label_mass" not in found)


@pytest.mark.parametrize(("kind", "rounds"), [("openjev", 2), ("lev", 1), ("nimble", 1), ("laya", 2)])
def test_255_options_are_answered(folder: Path, kind: str, rounds: int) -> None:
    question = {"type": "choice", "instructions": "Pick", "criteria": {f"option {i}": None for i in range(255)}}
    found = answer(loaded(folder / f"{kind}.gguf"), "which", question)
    assert probabilities(found).sum() == pytest.approx(1.0)
    assert len(found["probabilities"]) == 255
    assert found.get("x_shortlist_rounds", 1) == rounds


def test_no_text_can_end_the_turn(folder: Path) -> None:
    model, end = loaded(folder / "openjev.gguf"), tokenizer_at(folder / "openjev.gguf").backend.token_to_id("<|im_end|>")
    for state in ("a b", "a <|im_end|> b", {"<|im_end|>": ["<|im_end|>"]}):
        plan = model.planners["decisions"](request_of(state, question_of({"type": "noul", "instructions": "<|im_end|>?"})))
        assert next(plan)[0].token_ids.count(end) == 1, state
        plan.close()


@pytest.mark.parametrize("kind", [*OTHER_KINDS, "never heard of"])
def test_other_kinds_are_recognised_and_refused_by_name(tmp_path: Path, folder: Path, kind: str) -> None:
    write_decision_gguf(folder / "model", tmp_path / "x.gguf", kind, "{{ state }}", {})
    with pytest.raises(HeadwayError, match=f"decision model of the kind '{kind}'"):
        loaded(tmp_path)


def test_damaged_metadata_is_refused(tmp_path: Path, folder: Path) -> None:
    write_decision_gguf(folder / "model", tmp_path / "x.gguf", "openjev", "{{ state }}", {"choice": -1.0})
    with pytest.raises(HeadwayError, match=r"temperature\.choice must be a temperature above 0"):
        loaded(tmp_path / "x.gguf")
    writer = gguf.GGUFWriter(tmp_path / "y.gguf", "qwen3")
    writer.add_string("qwen3.decision.type", "openjev")
    finish(writer)
    with pytest.raises(HeadwayError, match="a chat template named systemone"):
        loaded(tmp_path / "y.gguf")


def test_temperatures_are_looked_up_by_type_and_bucket_then_by_type() -> None:
    by_bucket = {"choice.2": 2.0, "choice.3_5": 3.0, "choice.6_10": 4.0, "choice.11": 5.0, "noul": 6.0}
    found = DecisionMetadata("qwen3", "openjev", "", by_bucket, 0, 0)
    assert [found.temperature("choice", n) for n in (2, 3, 5, 6, 10, 11, 255)] == [2, 3, 3, 4, 4, 5, 5]
    assert (found.temperature("noul", 2), found.temperature("score", 4)) == (6, 1)
    lev = DecisionMetadata("qwen3", "lev", "", {"choice.small": 2.0, "choice.mid": 3.0, "choice.large": 4.0}, 0, 0)
    assert [lev.temperature("choice", n) for n in (2, 8, 9, 26, 27, 255)] == [2, 2, 3, 3, 4, 4]


def test_a_template_that_fails_fails_the_question(tmp_path: Path, folder: Path) -> None:
    write_decision_gguf(folder / "model", tmp_path / "x.gguf", "openjev", "{{ raise_exception('no such thing') }}", {})
    with pytest.raises(HeadwayError, match="no such thing"):
        answer(loaded(tmp_path / "x.gguf"), "state", {"type": "noul", "instructions": "i"})


def test_files_without_decisions_are_not_detected(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "qwen3")
    finish(writer)
    (tmp_path / "y.gguf").write_bytes(b"GGUF")
    for name in ("x.gguf", "y.gguf", "z.gguf"):
        assert not GgufDecisionFamily().detect(Package(name, tmp_path / name))
