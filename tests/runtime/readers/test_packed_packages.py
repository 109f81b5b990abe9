"""Decision packages whose backbones are packed answer as the oracles do with the matrices unpacked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headway.artifacts.resumable_download import file_sha256
from headway.errors import ArtifactError, PlacementError
from headway.runtime.family import ModelFamily, Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.loading.load_failure import failure_reason, is_final
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.package import Package
from headway.runtime.readers.decision1.family import Decision1Family
from headway.runtime.readers.decision2.family import Decision2Family
from headway.runtime.readers.decision3.family import Decision3Family
from headway.runtime.readers.kev.family import KevFamily
from headway.runtime.readers.laya.family import LayaFamily
from headway.runtime.readers.vela2.family import Vela2Family
from tests.models.encoders.packed_encoders import is_matrix
from tests.runtime.loading.test_loader import World, world
from tests.runtime.packed_packages import pair
from tests.runtime.readers.asking import asked
from tests.runtime.readers.decision_oracles import (
    Decision1QwenOracle,
    Decision1VelaOracle,
    Decision2Oracle,
    Decision3Oracle,
)
from tests.runtime.readers.test_decision_packages import QUESTIONS, SEED
from tests.runtime.toy_plugins import toy_plugins

__all__ = ["world"]


def decision2_lists(folder: Path) -> None:
    """The manifest and the identity of changed files."""
    from headway.runtime.loading.manifests import canonical_digest
    from headway.runtime.readers.decision2.package import identity_files

    manifest = json.loads((folder / "MODEL_MANIFEST.json").read_text())
    model = canonical_digest({name: file_sha256(folder / name) for name in identity_files(folder)})
    for name in ("calibration.json", "score_bias.json"):
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | {"model_sha256": model}))
    manifest["identity"]["model_sha256"] = model
    manifest["files_sha256"] = {name: file_sha256(folder / name) for name in manifest["files_sha256"]}
    (folder / "MODEL_MANIFEST.json").write_text(json.dumps(manifest))


def decision3_lists(folder: Path) -> None:
    manifest = json.loads((folder / "MODEL_MANIFEST.json").read_text())
    manifest["files_bytes"] = {name: (folder / name).stat().st_size for name in manifest["files_bytes"]}
    (folder / "MODEL_MANIFEST.json").write_text(json.dumps(manifest))


def _backbone(name: str, tensor: torch.Tensor) -> bool:
    """Matrices of layers: no embeddings, vision towers, heads, readouts."""
    return is_matrix(name, tensor) and "layers." in name and not name.startswith(("head.layers", "heads.", "visual"))


def _blocks(name: str, tensor: torch.Tensor) -> bool:
    return is_matrix(name, tensor) and ("layers." in name or "_blocks." in name) and not name.startswith("heads.")


CASES: list[tuple[str, ModelFamily, str, str, dict[str, Any], Callable[[Path], Any] | None]] = [
    ("decision1", Decision1Family(), "qwen3.5-decision", "int4",
     {"weights": ("backbone/model.safetensors",), "config": "backbone/config.json"}, Decision1QwenOracle),
    ("decision1", Decision1Family(), "vela-encoder", "int8",
     {"weights": ("native/encoder/model.safetensors", "native/choice_encoder.safetensors"), "config": "native/encoder/config.json", "which": _blocks},
     Decision1VelaOracle),
    ("decision2", Decision2Family(), "qwen3", "awq",
     {"weights": ("backbone/model.safetensors",), "config": "backbone/config.json", "finish": decision2_lists}, Decision2Oracle),
    ("decision2", Decision2Family(), "qwen3.5", "gptq",
     {"weights": ("backbone/model.safetensors",), "config": "backbone/config.json", "finish": decision2_lists}, Decision2Oracle),
    ("decision3", Decision3Family(), "noncausal", "int4", {"finish": decision3_lists}, Decision3Oracle),
    ("vela2", Vela2Family(), "encoder", "int4", {}, None),
    ("vela2", Vela2Family(), "decoder", "nvfp4", {"weights": ("model-00001-of-00002.safetensors",)}, None),
    ("kev", KevFamily(), "converted", "mxfp4", {}, None),
    ("laya", LayaFamily(), "laya", "int8", {"config": "encoder/config.json"}, None),
]  # fmt: skip


def opened(family: ModelFamily, folder: Path) -> LoadedModel:
    package = Package(str(folder), folder)
    assert family.detect(package)
    spec = family.describe(package)
    model = family.load(package, spec, Placement("cpu", "float32", False, {}), lambda done, total: None)
    assert model.facts.parameters == spec.parameters
    return model


@pytest.mark.parametrize(("name", "family", "variant", "form", "how", "oracle"), CASES, ids=[f"{case[0]}-{case[2]}-{case[3]}" for case in CASES])
def test_probabilities(
    name: str, family: ModelFamily, variant: str, form: str, how: dict[str, Any], oracle: Callable[[Path], Any] | None, tmp_path: Path
) -> None:
    family.write_fixture(tmp_path / "dense", variant, SEED)
    packed, twin = pair(tmp_path / "dense", tmp_path, form, **{"which": _backbone, **how})
    specs = [family.describe(Package(str(folder), folder)) for folder in (packed, twin)]
    assert specs[0].parameters == specs[1].parameters
    assert (specs[0].stored.title is not None, specs[1].stored.title) == (True, None)
    model = opened(family, packed)
    reference = opened(family, twin) if oracle is None else oracle(twin)
    for state, question in QUESTIONS[:4]:
        expected = asked(reference, state, question) if oracle is None else reference.probabilities(state, question)
        assert np.abs(asked(model, state, question) - expected).max() <= (1e-4 if oracle is None else 1e-3)


def test_a_packed_decision_model_passes_all_stages_of_a_worker(world: World, tmp_path: Path) -> None:
    """Digests, manifest, counts, probe and self-check; and FP8 is refused with the sentence of its kind."""
    family = Decision2Family()
    family.write_fixture(tmp_path / "dense", "qwen3", SEED)
    how = {"weights": ("backbone/model.safetensors",), "config": "backbone/config.json", "which": _backbone, "finish": decision2_lists}
    plugins = toy_plugins(families={"decision2": "headway.runtime.readers.decision2.family:Decision2Family"})
    packed, _ = pair(tmp_path / "dense", tmp_path / "int4", "int4", **how)
    served = world.load(ModelEntry(str(packed)), plugins)
    assert served.is_ready
    assert served.golden.checked > 0
    fp8, _ = pair(tmp_path / "dense", tmp_path / "fp8", "fp8", **how)
    assert "FP8 weights need an NVIDIA GPU of compute capability 8.9" in failure_reason(world.failure(ModelEntry(str(fp8)), plugins))


def test_packed_weights_of_which_the_configuration_says_nothing(tmp_path: Path) -> None:
    family = Decision2Family()
    family.write_fixture(tmp_path / "dense", "qwen3", SEED)
    packed, twin = pair(tmp_path / "dense", tmp_path, "int4", weights=("backbone/model.safetensors",), config="backbone/config.json", which=_backbone)
    (packed / "backbone" / "config.json").write_bytes((twin / "backbone" / "config.json").read_bytes())
    with pytest.raises(ArtifactError, match="no file says how"):
        family.describe(Package(str(packed), packed))


def test_an_adapter_on_a_packed_base(tmp_path: Path) -> None:
    family = KevFamily()
    family.write_fixture(tmp_path / "dense", "adapter", SEED)
    how: dict[str, Any] = {"weights": ("base/model.safetensors",), "config": "base/config.json", "which": _backbone}
    packed, twin = pair(tmp_path / "dense", tmp_path, "int8", **how)
    answers = []
    for folder in (packed, twin):
        package = Package(str(folder), folder)
        options = {"base_path": str(folder / "base")}
        answers.append(family.load(package, family.describe(package), Placement("cpu", "float32", False, options), lambda done, total: None))
    state, question = QUESTIONS[0]
    assert np.abs(asked(answers[0], state, question) - asked(answers[1], state, question)).max() <= 1e-4
    fp8, _ = pair(tmp_path / "dense", tmp_path / "fp8", "fp8", **how)
    placement = Placement("cpu", "float32", False, {"base_path": str(fp8 / "base")})
    package = Package(str(fp8), fp8)
    with pytest.raises(PlacementError, match="FP8 weights need an NVIDIA GPU") as refused:
        family.load(package, family.describe(package), placement, lambda done, total: None)
    assert is_final(refused.value)
