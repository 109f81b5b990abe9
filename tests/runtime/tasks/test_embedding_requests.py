"""Requests for embeddings: what is refused, which items fail alone, encodings."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import ArtifactError, RequestError
from headway.wire.classify import InvalidInput
from headway.wire.embeddings import EmbeddingsRequest, Media, Text, TokenIds
from tests.runtime.tasks.task_models import TaskModels, answer, load

ONE = (Text("a text"),)


@pytest.mark.parametrize(
    ("variant", "fields", "message", "param"),
    [
        ("nested-modernbert", {"dimensions": 65}, "dimensions must be one of 64, 32, 16, found 65", "dimensions"),
        ("nested-modernbert", {"dimensions": 0}, "must be one of 64, 32, 16, found 0", "dimensions"),
        ("nested-modernbert", {"dimensions": -1}, "found -1", "dimensions"),
        ("embedding-bert", {"dimensions": 32}, "must be one of 64 .its vectors cannot be shortened., found 32", "dimensions"),
        ("nested-modernbert", {"layer": 4}, "layer must be one of 3, 2, 1, found 4", "layer"),
        ("embedding-bert", {"layer": 3}, "no exits before its last layer", "layer"),
        ("embedding-bert", {"input_type": "passage"}, "one of document, query", "input_type"),
        ("embedding-bert", {"max_tokens": 513}, "from 3 to 512", "options.max_tokens"),
    ],
)  # fmt: skip
def test_requests_that_are_refused(task_models: TaskModels, variant: str, fields: dict[str, Any], message: str, param: str) -> None:
    with pytest.raises(RequestError, match=message) as refused:
        answer(task_models.load(variant), "embeddings", EmbeddingsRequest(ONE, **fields))
    assert refused.value.param == param


def test_one_bad_item_never_harms_another(task_models: TaskModels) -> None:
    model = task_models.load("embedding-bert")
    inputs = (
        Text("a text"), Text("word " * 600), Text(""), Text(" \n"), TokenIds((5, 99_999)), TokenIds(()), Media("image", b""),
        InvalidInput("input 7 is a number"), Text("a text"), TokenIds((7,) * 600),
    )  # fmt: skip
    body = answer(model, "embeddings", EmbeddingsRequest(inputs))
    codes = [entry.get("error") for entry in body["data"]]
    assert codes == [None, "max_length_exceeded", *["invalid_input"] * 6, None, "max_length_exceeded"]
    assert [entry["index"] for entry in body["data"]] == list(range(10))
    assert all(entry["object"] == "embedding" and ("embedding" in entry) == ("error" not in entry) for entry in body["data"])
    assert body["data"][0]["embedding"] == body["data"][8]["embedding"]
    assert body["usage"] == {"prompt_tokens": 2 * body["data"][0]["input"]["tokens"], "total_tokens": 2 * body["data"][0]["input"]["tokens"]}
    assert "input 4 holds the token 99999" in body["data"][4]["message"]
    assert "input 9 has 602 tokens with its special tokens, the limit is 512" in body["data"][9]["message"]


def test_a_single_input_that_fails_is_the_failure_of_the_call(task_models: TaskModels) -> None:
    model = task_models.load("embedding-bert")
    for given, reason in ((Text("word " * 600), "max_length_exceeded"), (Text("  "), "invalid_input")):
        with pytest.raises(RequestError, match="the input has") as refused:
            next(model.planners["embeddings"](EmbeddingsRequest((given,), single=True)))
        assert refused.value.reason == reason
    assert len(answer(model, "embeddings", EmbeddingsRequest((Text("a"),), single=True))["data"]) == 1


def test_base64_is_the_same_numbers_as_little_endian_float32(task_models: TaskModels) -> None:
    model = task_models.load("nested-modernbert")
    for size in (64, 16):
        plain = answer(model, "embeddings", EmbeddingsRequest(ONE, dimensions=size))["data"][0]["embedding"]
        coded = answer(model, "embeddings", EmbeddingsRequest(ONE, dimensions=size, base64=True))["data"][0]["embedding"]
        numbers = np.frombuffer(base64.b64decode(coded), dtype="<f4")
        assert numbers.shape == (size,)
        assert numbers.tolist() == np.float32(plain).tolist()


def test_the_prompt_counts(task_models: TaskModels) -> None:
    model = task_models.load("embedding-bert")
    plain, asked, ids = (
        answer(model, "embeddings", request)["data"][0]["input"]["tokens"]
        for request in (EmbeddingsRequest(ONE), EmbeddingsRequest(ONE, input_type="query"), EmbeddingsRequest((TokenIds((7, 8)),), input_type="query"))
    )
    assert asked > plain
    assert ids == 2 + 2 + asked - plain


def test_a_default_prompt_applies_when_none_is_named(task_models: TaskModels, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    shutil.copytree(task_models.folder("embedding-bert"), folder)
    change(folder / "config_sentence_transformers.json", default_prompt_name="query")
    asked = answer(task_models.load("embedding-bert"), "embeddings", EmbeddingsRequest(ONE, input_type="query"))
    assert answer(load(folder), "embeddings", EmbeddingsRequest(ONE))["data"] == asked["data"]


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("file", "fields", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "exactly one of mean, cls and lasttoken"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False, "pooling_mode_weightedmean_tokens": True}, "pooling_mode_weightedmean_tokens"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "found none"),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt"),
        ("1_Pooling/config.json", {"word_embedding_dimension": 32}, "vectors of 32"),
        ("config.json", {"matryoshka_dimensions": [128]}, "sizes from 1 to 64"),
        ("config.json", {"representation_contract": {"version": 2}}, "representation_contract"),
    ],
)  # fmt: skip
def test_layouts_that_are_refused(task_models: TaskModels, tmp_path: Path, file: str, fields: dict[str, object], message: str) -> None:
    folder = tmp_path / "package"
    shutil.copytree(task_models.folder("embedding-bert"), folder)
    change(folder / file, **fields)
    with pytest.raises(ArtifactError, match=message) as refused:
        load(folder)
    assert refused.value.reason == "unsupported_sentence_layout"


def test_modules_that_are_not_built_are_refused(task_models: TaskModels, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    shutil.copytree(task_models.folder("embedding-bert"), folder)
    modules = json.loads((folder / "modules.json").read_text())
    modules.insert(2, {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ArtifactError, match="Transformer, Pooling, Dense, Normalize"):
        load(folder)


def test_newer_spellings_of_the_pooling(task_models: TaskModels, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    shutil.copytree(task_models.folder("embedding-bert"), folder)
    (folder / "1_Pooling" / "config.json").write_text('{"embedding_dimension": 64, "pooling_mode": "mean", "include_prompt": true}')
    assert answer(load(folder), "embeddings", EmbeddingsRequest(ONE)) == answer(task_models.load("embedding-bert"), "embeddings", EmbeddingsRequest(ONE))
