"""One model in memory without a server around it: for commands that look at what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.loading.loader import ModelLoader, OpenedModel
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.package_source import default_name
from headway.runtime.plugins import PluginSet
from headway.runtime.served_model import ServedModel
from headway.runtime.settings import WorkerSettings
from headway.runtime.threads import use_threads


@dataclass(frozen=True, slots=True)
class OneModel:
    """Forward passes run on `device`, as in a worker."""

    opened: OpenedModel
    device: DeviceThread


@contextmanager
def one_model(entry: ModelEntry, settings: WorkerSettings) -> Iterator[OneModel]:
    """Load it as a worker would, up to the weights. Raises what loading raises."""
    use_threads(settings.threads)
    device = DeviceThread()
    try:
        loader = ModelLoader(PluginSet.installed(), settings, device, _no_scheduler)
        yield OneModel(loader.open(ServedModel(entry, entry.name or default_name(entry))), device)
    finally:
        device.close()


def _no_scheduler(*_: object) -> NoReturn:
    raise RuntimeError("a model that is only opened has no scheduler")
