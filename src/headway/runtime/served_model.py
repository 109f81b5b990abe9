"""ServedModel: one model of this process, from its line in the configuration to the moment it answers.

Written by the loader thread, read by everybody: each change is one assignment of an immutable record, so a reader sees
the old one or the new one and needs no lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.model_entry import ModelEntry

if TYPE_CHECKING:
    from headway.runtime.execution.scheduler import Scheduler

State: TypeAlias = Literal["starting", "loading", "warming", "ready", "degraded", "failed"]
GoldenStatus: TypeAlias = Literal["pending", "matched", "unverified", "failed"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """`reason` says what is going on, or what failed; None when there is nothing to say."""

    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """The self-check: `checked` requests, of which `matched` agree with `reference` (its name, "" when there is none)."""

    status: GoldenStatus = "pending"
    checked: int = 0
    matched: int = 0
    reference: str = ""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PluginFacts:
    """A plug-in that serves a model, and the distribution that brought it."""

    group: str
    name: str
    distribution: str
    version: str
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """`model_sha256` is over the digests of the loaded files; `manifest_sha256` is "" without a manifest; `repo` and
    `revision` are None for local packages."""

    repo: str | None
    revision: str | None
    model_sha256: str
    manifest_sha256: str
    licence: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the model runs, by the names that `/v1/models` shows."""

    engine: str
    accelerator: str
    accelerator_validated: bool
    device: str


@dataclass(frozen=True, slots=True)
class Running:
    """What is there once weights are in memory. `settings` are the effective ones. `quantization` says how the package stores its
    weights, if not as plain numbers."""

    model: LoadedModel
    family: str
    surfaces: tuple[Surface, ...]
    identity: Identity
    placed: Placed
    settings: ExecutionSettings
    scheduler: Scheduler
    quantization: str | None = None


class ServedModel:
    """`name` is what answers carry. `running` is None until the weights are in memory, and again after a failure."""

    def __init__(self, entry: ModelEntry, name: str):
        self.entry = entry
        self.name = name
        self.readiness = Readiness("starting")
        self.golden = GoldenResult()
        self.family: str | None = None
        self.plugins: tuple[PluginFacts, ...] = ()
        self.running: Running | None = None

    @property
    def is_ready(self) -> bool:
        return self.readiness.state == "ready"

    @property
    def accepted_names(self) -> frozenset[str]:
        """What a request may call it: its name, the configured reference with and without `@REVISION`, the repository, and
        the last parts of these."""
        reference = self.entry.model
        repo = self.running.identity.repo if self.running is not None else None
        given = [name for name in (reference, reference.partition("@")[0], repo) if name]
        return frozenset([self.name, *given, *(name.rstrip("/").rpartition("/")[2] for name in given)])


@dataclass(frozen=True, slots=True)
class ServedModels:
    """All models of the process, in the configured order."""

    models: Sequence[ServedModel]

    def named(self, name: str) -> ServedModel | None:
        """The model of that name; a configured name wins over the other spellings of another model."""
        for model in self.models:
            if model.name == name:
                return model
        return next((model for model in self.models if name in model.accepted_names), None)
