"""Task packages whose matrices are packed answer as transformers does with the matrices unpacked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from headway.errors import ArtifactError
from headway.runtime.package import Package
from headway.wire.classify import ClassifyRequest, TextInput
from headway.wire.embeddings import EmbeddingsRequest, Text
from tests.models.encoders.packed_encoders import is_matrix
from tests.runtime.packed_packages import pair
from tests.runtime.tasks.task_models import FAMILY, TaskModels, answer, load
from tests.runtime.tasks.test_classifier_parity import oracle, softmax
from tests.runtime.tasks.test_embedding_parity import cosines, vectors
from tests.runtime.tasks.texts import TEXTS


@pytest.mark.parametrize(
    ("backbone", "form"),
    [("bert", "int4"), ("distilbert", "int8"), ("mpnet", "awq"), ("roberta", "gptq"), ("xlm-roberta", "fp8 blocks"), ("deberta-v2", "int4"),
     ("modernbert", "mxfp4"), ("electra", "modelopt fp8"), ("qwen3", "int4"), ("qwen3", "modelopt nvfp4")],
)  # fmt: skip
def test_vectors(task_models: TaskModels, backbone: str, form: str, tmp_path: Path) -> None:
    packed, twin = pair(task_models.folder(f"embedding-{backbone}"), tmp_path, form)
    expected = np.stack(SentenceTransformer(str(twin), device="cpu").encode(list(TEXTS), prompt_name="document"))
    found = vectors(answer(load(packed), "embeddings", EmbeddingsRequest(tuple(map(Text, TEXTS)), input_type="document")))
    assert cosines(found, expected).min() >= 0.99999
    dense = vectors(answer(task_models.load(f"embedding-{backbone}"), "embeddings", EmbeddingsRequest(tuple(map(Text, TEXTS)), input_type="document")))
    assert cosines(dense, expected).max() < 0.99, "the matrices of the package were not replaced"


def _also_the_head(name: str, tensor: torch.Tensor) -> bool:
    return is_matrix(name, tensor) or name in ("classifier.dense.weight", "pre_classifier.weight", "head.dense.weight")


@pytest.mark.parametrize(
    ("backbone", "form", "which"),
    [("bert", "int4", is_matrix), ("deberta-v2", "gptq", is_matrix), ("modernbert", "int8", is_matrix), ("roberta", "int4", _also_the_head),
     ("distilbert", "awq", _also_the_head), ("modernbert", "fp8", _also_the_head)],
)  # fmt: skip
def test_probabilities(task_models: TaskModels, backbone: str, form: str, which: Callable[[str, torch.Tensor], bool], tmp_path: Path) -> None:
    """Heads are mostly left as they are; those that are packed are read too."""
    packed, twin = pair(task_models.folder(f"sequence-{backbone}"), tmp_path, form, which=which)
    assert any(name.startswith(("classifier.", "pre_classifier.", "head.")) and not name.endswith(("weight", "bias"))
               for name in load_file(packed / "model.safetensors")) == (which is _also_the_head)  # fmt: skip
    expected = softmax(oracle(twin, [(text,) for text in TEXTS]))
    body = answer(load(packed), "classify", ClassifyRequest(tuple(map(TextInput, TEXTS)), overflow="reject"))
    assert np.abs(np.array([result["probabilities"] for result in body["results"]]) - expected).max() <= 1e-3


@pytest.mark.parametrize(("variant", "form"), [("token-bert", "int4"), ("grounded-modernbert", "int8"), ("rerank-mpnet", "awq"), ("relevance-modernbert", "gptq")])
def test_every_task_loads_and_is_counted_unpacked(task_models: TaskModels, variant: str, form: str, tmp_path: Path) -> None:
    folder = task_models.folder(variant)
    packed, twin = pair(folder, tmp_path, form)
    model, plain = load(packed), load(twin)
    assert model.facts.parameters == plain.facts.parameters
    row = model.probe_rows(Random(1), 24)[0]
    assert np.abs(np.asarray(model.forward([row])[0]) - np.asarray(plain.forward([row])[0])).max() <= 1e-4
    spec = FAMILY.describe(Package(str(packed), packed))
    assert spec.stored.title is not None
    assert spec.stored.needs == ()
    assert FAMILY.describe(Package(str(twin), twin)).stored.title is None


def test_a_section_in_a_file_of_its_own_is_part_of_the_identity(task_models: TaskModels, tmp_path: Path) -> None:
    packed, _ = pair(task_models.folder("sequence-bert"), tmp_path, "gptq")
    config = json.loads((packed / "config.json").read_text())
    section = config.pop("quantization_config")
    (packed / "config.json").write_text(json.dumps(config))
    with pytest.raises(ArtifactError, match="no file says how"):
        FAMILY.describe(Package(str(packed), packed))
    (packed / "quantize_config.json").write_text(json.dumps(section))
    assert "quantize_config.json" in FAMILY.describe(Package(str(packed), packed)).files


def test_a_section_that_belongs_to_other_weights(task_models: TaskModels, tmp_path: Path) -> None:
    packed, twin = pair(task_models.folder("sequence-bert"), tmp_path, "int4")
    (packed / "model.safetensors").write_bytes((twin / "model.safetensors").read_bytes())
    with pytest.raises(ArtifactError, match="no tensor ends in") as refused:
        FAMILY.describe(Package(str(packed), packed))
    assert refused.value.reason == "quantization_mismatch"
