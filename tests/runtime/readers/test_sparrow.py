"""`.sparrow` packages, against the package `sparrow-decider`, whose own code reads the same files."""

from __future__ import annotations

import io
import json
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparrow_decider import Decider

from headway.errors import HeadwayError
from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.package import Package
from headway.runtime.readers.sparrow.family import SparrowFamily
from headway.runtime.readers.sparrow.number_pairs import number_pairs
from tests.runtime.readers.asking import answer, asked

PUBLISHED = ("sparrow-nano-general-v1.1", "sparrow-nano-robot-v1.2")
TEXT = st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cs", "Cn"]), max_size=80)


def published(name: str) -> Path:
    return Path(str(files("sparrow_decider") / "models" / f"{name}.sparrow"))


def loaded(path: Path) -> LoadedModel:
    family = SparrowFamily()
    package = Package(str(path), path)
    assert family.detect(package)
    return family.load(package, family.describe(package), Placement("cpu", "float32", False), lambda done, total: None)


@pytest.fixture(scope="module", params=PUBLISHED)
def pair(request: pytest.FixtureRequest) -> tuple[LoadedModel, Decider]:
    path = published(request.param)
    return loaded(path), Decider.load(str(path))


QUESTIONS: list[tuple[Any, dict[str, Any]]] = [
    ("User: I was charged twice for my order", {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "charges, invoices", "bug": None, "other": "anything else"}}),
    ("battery: 6%\nfront distance = 0.4\nzone_a: dirt=34, dust = 2\nzone_b: dirt=-3.5", {"type": "choice", "instructions": "Where to clean next?", "criteria": {"zone_a": None, "zone_b": "the hall", "dock": "charge the battery"}}),
    ({"mood": "angry", "orders": [1, 2, {"née": "Ärger 🙂"}]}, {"type": "noul", "instructions": "Does the customer complain?"}),
    (["a", "b", 3], {"type": "noul", "instructions": {"ask": "is it so?"}, "criteria": {"true": {"means": ["yes"]}}}),
    ("", {"type": "noul", "instructions": "anything?"}),
    ("数据库 is slow. Naïve café, İstanbul, don't!", {"type": "score", "instructions": "How urgent is it?", "criteria": ["not at all", "soon", {"level": "now"}, "yesterday"]}),
    ("x", {"type": "score", "criteria": [f"level {i}" for i in range(10)]}),
    ("which one", {"type": "choice", "instructions": "Pick", "criteria": {f"option {i}": f"the number {i}" for i in range(255)}}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(QUESTIONS)))
def test_probabilities_are_those_of_the_package(pair: tuple[LoadedModel, Decider], case: int) -> None:
    model, reference = pair
    state, question = QUESTIONS[case]
    found = asked(model, state, question)
    expected = reference.probs(state, question)[3]
    assert np.abs(found - expected).max() <= 1e-6


@given(state=TEXT, instructions=TEXT, options=st.lists(TEXT.filter(str.strip), min_size=2, max_size=6, unique=True))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_the_probabilities_of_the_package(state: str, instructions: str, options: list[str]) -> None:
    question = {"type": "choice", "instructions": instructions, "criteria": dict.fromkeys(options)}
    for model, reference in _pairs():
        assert np.abs(asked(model, state, question) - reference.probs(state, question)[3]).max() <= 1e-6


_PAIRS: list[tuple[LoadedModel, Decider]] = []


def _pairs() -> list[tuple[LoadedModel, Decider]]:
    if not _PAIRS:
        _PAIRS.extend((loaded(published(name)), Decider.load(str(published(name)))) for name in PUBLISHED)
    return _PAIRS


def test_numbers_of_a_state_are_found_with_their_lines() -> None:
    found = number_pairs("battery: 6%\nzone_a: dirt_level=34, wet = -0.5\nno number here\n7: 8")
    assert [(pair.key, pair.line, pair.value) for pair in found] == [
        ("battery", "battery", 6.0), ("dirt_level", "zone_a", 34.0), ("wet", "zone_a", -0.5),
    ]  # fmt: skip
    assert len(number_pairs("\n".join(f"k{i}: {i}" for i in range(40)))) == 16


def test_a_state_over_the_limit_fails_unless_it_may_be_cut() -> None:
    model = loaded(published(PUBLISHED[0]))
    state = "word " * 513
    question = {"type": "noul", "instructions": "Is it long?"}
    with pytest.raises(HeadwayError, match="the state has more than 512 tokens; nothing was truncated"):
        answer(model, state, question)
    assert answer(model, state, question, truncate=True) == answer(model, "word " * 512, question)


@pytest.mark.parametrize("variant", SparrowFamily().fixture_variants())
def test_fixtures_are_packages_and_the_same_for_the_same_seed(tmp_path: Path, variant: str) -> None:
    family = SparrowFamily()
    written = []
    for run, seed in (("a", 7), ("b", 7), ("c", 8)):
        family.write_fixture(tmp_path / run, variant, seed)
        written.append(next((tmp_path / run).iterdir()))
    assert written[0].read_bytes() == written[1].read_bytes() != written[2].read_bytes()
    model, reference = loaded(tmp_path / "a"), Decider.load(str(written[0]))
    for state, question in QUESTIONS:
        assert np.abs(asked(model, state, question) - reference.probs(state, question)[3]).max() <= 1e-6


def _archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return path


def _arrays(**arrays: Any) -> bytes:
    stored = io.BytesIO()
    np.savez(stored, **arrays)
    return stored.getvalue()


@pytest.mark.parametrize(
    ("config", "arrays", "match"),
    [
        ({"arch": "modernbert"}, {}, "architecture 'modernbert'"),
        ({"arch": "static", "max_len": 0}, {}, "max_len must be"),
        ({"arch": "static", "temperature_by_kind": {"noul": -1}}, {}, "numbers above 0"),
        ({"arch": "static"}, {}, "emb.weight is missing"),
        ({"arch": "static"}, {"emb.weight": np.zeros((1, 4))}, "1 rows for 2 tokens"),
        ({"arch": "static"}, {"emb.weight": np.zeros((2, 4)), "kind.weight": np.zeros((3, 5))}, r"kind.weight must have the shape \[3, 4\]"),
        ({"arch": "static"}, {"x": np.array([object()], dtype=object)}, "model.npz cannot be read"),
    ],
)
def test_damaged_and_foreign_packages_are_refused(tmp_path: Path, config: Any, arrays: dict[str, Any], match: str) -> None:
    vocabulary = json.dumps({"vocab": {"[PAD]": 0, "[UNK]": 1}}).encode()
    path = _archive(tmp_path / "x.sparrow", config__json=json.dumps(config).encode(), tokenizer__json=vocabulary, model__npz=_arrays(**arrays))
    with pytest.raises(HeadwayError, match=match):
        loaded(path)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sparrow").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(HeadwayError, match="it is no zip file"):
        loaded(tmp_path / "x.sparrow")
    with pytest.raises(HeadwayError, match=r"tokenizer\.json is missing"):
        loaded(_archive(tmp_path / "y.sparrow", config__json=b'{"arch": "static"}'))
    assert not SparrowFamily().detect(Package("z", tmp_path))  # two of them: which one is meant is not said


def test_the_device_thread_is_not_needed() -> None:
    assert not loaded(published(PUBLISHED[0])).uses_device_thread
