"""Engine: the plug-in that brings the weights of a family to a device."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar

from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.package import Package

ENGINES_GROUP = "headway.engines"


class Engine(abc.ABC):
    """Found through the entry-point group `headway.engines`; the built-in one is found the same way."""

    name: ClassVar[str]
    auto_priority: ClassVar[int] = 100  # smaller is asked first by `--engine auto`

    @abc.abstractmethod
    def refuses(self, family: ModelFamily, spec: ModelSpec, accelerator: str) -> str | None:
        """Why it cannot run the model on that kind of device, or None."""

    @abc.abstractmethod
    def load(
        self, family: ModelFamily, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]
    ) -> LoadedModel:
        """Weights into memory; `progress(done, total)` in bytes."""
