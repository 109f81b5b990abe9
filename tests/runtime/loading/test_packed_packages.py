"""Packed packages on their way into a worker: which devices they need, what they take, what is checked and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.runtime.http.health import health
from headway.runtime.http.models_document import card
from headway.runtime.loading.load_failure import failure_reason, is_final
from headway.runtime.loading.load_thread import Retries, load_all
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.placement import memory_estimate
from headway.runtime.package import Package
from headway.runtime.selfcheck.golden import Strictness, golden_answers
from headway.runtime.selfcheck.golden_reference import beside, write_reference
from headway.runtime.selfcheck.golden_requests import golden_requests
from headway.runtime.served_model import ServedModels
from headway.runtime.tasks.family import TaskHeads
from tests.runtime.loading.test_load_thread import FakeClock
from tests.runtime.loading.test_loader import Watched, World, world
from tests.runtime.packed_packages import pair
from tests.runtime.toy_plugins import toy_plugins

__all__ = ["world"]
TASKS = {"task_heads": "headway.runtime.tasks.family:TaskHeads"}
PLAIN_CPU = {"cpu": "headway.runtime.accelerators.cpu:Cpu"}
FP8 = "FP8 weights need an NVIDIA GPU of compute capability 8.9 or later or an AMD Instinct MI300 or MI350 series GPU"
NVFP4 = "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU"


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dense") / "sequence-bert"
    TaskHeads().write_fixture(folder, "sequence-bert", 3)
    return folder


@pytest.mark.parametrize(
    ("form", "sentence"), [("fp8", FP8), ("fp8 blocks", FP8), ("modelopt fp8", FP8), ("nvfp4", NVFP4), ("modelopt nvfp4", NVFP4)]
)
def test_devices_without_the_arithmetic_refuse_for_good(world: World, dense: Path, form: str, sentence: str, tmp_path: Path) -> None:
    packed, _ = pair(dense, tmp_path, form)
    error = world.failure(ModelEntry(str(packed)), toy_plugins(PLAIN_CPU, TASKS))
    assert failure_reason(error).startswith("PlacementError: ")
    assert sentence in failure_reason(error)
    assert is_final(error)
    served = Watched(ModelEntry(str(packed)))
    clock = FakeClock()
    load_all([served], world.loader(toy_plugins(PLAIN_CPU, TASKS)).load, Retries(5, 5.0), clock)
    assert served.readiness.state == "failed"
    assert sentence in str(served.readiness.reason)
    assert clock.sleeps == []


@pytest.mark.parametrize("form", ["fp8", "nvfp4", "modelopt nvfp4"])
def test_devices_with_the_arithmetic_take_them(world: World, dense: Path, form: str, tmp_path: Path) -> None:
    packed, _ = pair(dense, tmp_path, form)
    served = world.load(ModelEntry(str(packed)), toy_plugins({"cpu": "EveryCpu"}, TASKS))
    assert served.is_ready
    needed = "fp8" if "fp8" in form else "nvfp4"
    assert [plugin.capabilities for plugin in served.plugins if plugin.group == "headway.accelerators"] == [(needed,)]


@pytest.mark.parametrize(("form", "title"), [("int4", "compressed-tensors int4, groups of 16, reordered"), ("int8", "compressed-tensors int8, a scale for each output"),
                                             ("awq", "AWQ int4, groups of 16"), ("mxfp4", "mxfp4, groups of 32")])  # fmt: skip
def test_integers_and_mxfp4_run_on_a_cpu_and_are_shown(world: World, dense: Path, form: str, title: str, tmp_path: Path) -> None:
    packed, twin = pair(dense, tmp_path, form)
    served = world.load(ModelEntry(str(packed)), toy_plugins(PLAIN_CPU, TASKS))
    assert served.is_ready
    assert card(served, 0.0)["quantization"] == title
    assert health(ServedModels([served]), is_closing=False)[1]["models"]["toy"]["quantization"] == title
    assert card(world.load(ModelEntry(str(twin)), toy_plugins(PLAIN_CPU, TASKS)), 0.0)["quantization"] is None


def test_the_estimate_counts_what_is_unpacked(world: World, dense: Path, tmp_path: Path) -> None:
    packed, twin = pair(dense, tmp_path, "int4")
    plugins = toy_plugins(PLAIN_CPU, TASKS)
    parameters = [world.load(ModelEntry(str(each)), plugins).running for each in (packed, twin)]
    counts = {running.model.facts.parameters for running in parameters if running is not None}
    assert len(counts) == 1
    too_little = (memory_estimate(counts.pop()) - 1) / (1 << 30)
    assert world.failure(ModelEntry(str(packed), memory_budget_gib=too_little), plugins).reason == "over_budget"


def test_the_self_check_runs_on_the_packed_package(world: World, dense: Path, tmp_path: Path) -> None:
    """Its record is its own: the digests of other weights are others."""
    packed, twin = pair(dense, tmp_path, "int4")
    plugins = toy_plugins(PLAIN_CPU, TASKS)
    first = world.load(ModelEntry(str(packed)), plugins)
    assert first.golden.status == "unverified"
    assert first.golden.checked > 0
    running = first.running
    assert running is not None
    answers = golden_answers(running.model, golden_requests(running.model.facts, running.surfaces), Strictness(0.0))
    path = beside(Package("toy", packed))
    write_reference(path, running.identity.model_sha256, "cpu", answers, {})
    assert world.load(ModelEntry(str(packed)), plugins).golden.status == "matched"
    identities = {each.running.identity.model_sha256 for each in (first, world.load(ModelEntry(str(twin)), plugins)) if each.running is not None}
    assert len(identities) == 2


@pytest.mark.parametrize(("section", "says"), [({"quant_method": "exl2"}, "'exl2'"), ({"quant_method": "awq", "version": "gemv"}, "gemv"), ({"bits": 4}, "'unknown'")])
def test_formats_that_are_not_read_are_final(world: World, dense: Path, section: dict[str, object], says: str, tmp_path: Path) -> None:
    packed, _ = pair(dense, tmp_path, "awq")
    config = json.loads((packed / "config.json").read_text())
    (packed / "config.json").write_text(json.dumps(config | {"quantization_config": section}))
    error = world.failure(ModelEntry(str(packed)), toy_plugins(PLAIN_CPU, TASKS))
    assert error.reason == "quantization_not_built"
    assert says in error.message
    assert is_final(error)
