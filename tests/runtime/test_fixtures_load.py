"""Every package that a family can write goes through the whole load pipeline, and only its own family recognizes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.loading.loader import ModelLoader
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.package import Package
from headway.runtime.plugins import PluginSet
from headway.runtime.served_model import ServedModel
from headway.runtime.settings import WorkerSettings

PLUGINS = PluginSet.installed()


@pytest.fixture
def loader(tmp_path: Path) -> Iterator[ModelLoader]:
    device = DeviceThread()
    settings = WorkerSettings(cache_dir=str(tmp_path / "cache"))
    yield ModelLoader(PLUGINS, settings, device, lambda served, model, execution, is_fault: Scheduler(model, execution, device))
    assert device.close()


@pytest.mark.parametrize("family", list(PLUGINS.families.by_name))
def test_all_variants(family: str, loader: ModelLoader, tmp_path: Path) -> None:
    writer = PLUGINS.families.by_name[family].thing
    (tmp_path / "nothing").mkdir()
    assert not writer.detect(Package("nothing", tmp_path / "nothing"))
    for variant in writer.fixture_variants():
        folder = tmp_path / variant
        writer.write_fixture(folder, variant, 7)
        recognized_by = [name for name, each in PLUGINS.families.by_name.items() if each.thing.detect(Package(variant, folder))]
        assert recognized_by == [family], variant
        bases = [str(base) for base in (Path(f"{folder}-base"), folder / "base") if base.is_dir()]  # of adapters
        served = ServedModel(ModelEntry(str(folder), options={"base_path": bases[0]} if bases else {}), variant)
        loader.load(served)
        running = served.running
        assert running is not None, variant
        assert served.is_ready, variant
        assert set(running.surfaces) == set(running.model.planners), variant
        assert served.golden.status == "unverified", variant
        assert served.golden.checked >= 1, variant
        assert running.model.memory_bytes > 0, variant


@pytest.mark.parametrize("name", ["all-minilm-l6-v2", "sparrow-nano"])
def test_models_of_the_package_registry_answer_as_recorded(name: str) -> None:
    """The records that are shipped; whoever changes what these models answer has to record them again."""
    device = DeviceThread()
    served = ServedModel(ModelEntry(name), name)
    ModelLoader(PLUGINS, WorkerSettings(), device, lambda s, model, execution, is_fault: Scheduler(model, execution, device)).load(served)
    assert device.close()
    assert served.golden.status == "matched", served.golden
    assert served.golden.checked == served.golden.matched >= 1
    assert served.running is not None
    assert served.golden.reference == f"{served.running.identity.model_sha256}.json"
