"""ModelLoader: one attempt to bring one model from its configuration to the point where it answers."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.capacity.byte_text import byte_text
from headway.errors import ConfigError, PackageError, SelfCheckError
from headway.runtime.calibration.attach import attach
from headway.runtime.calibration.store import find_calibration
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.loading.family_choice import family_of
from headway.runtime.loading.licence_policy import check_licence
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.needs import needed_capabilities
from headway.runtime.loading.package_source import Source, Stores, obtain
from headway.runtime.loading.placement import Spot, engines_for, named_devices, place
from headway.runtime.loading.verification import Digests
from headway.runtime.package import Package
from headway.runtime.plugins import Plugin, PluginSet
from headway.runtime.selfcheck.golden import Strictness, compare, golden_answers
from headway.runtime.selfcheck.golden_reference import find_reference
from headway.runtime.selfcheck.golden_requests import golden_requests
from headway.runtime.selfcheck.kernel_choices import unapplied
from headway.runtime.selfcheck.probe import probe
from headway.runtime.served_model import Identity, Placed, Readiness, Running, ServedModel
from headway.runtime.settings import WorkerSettings

_log = logging.getLogger(__name__)
DTYPE_OPTION = "dtype"  # the one option of a models file that every family has
BASE_PATH_OPTION = "base_path"  # that of families with adapter packages; --base-path is its default
StartScheduler = Callable[[ServedModel, LoadedModel, ExecutionSettings, Callable[[BaseException], bool]], Scheduler]
"""(model, weights, settings, whether an exception is a fault of the device) -> its scheduler."""


@dataclass(frozen=True, slots=True)
class _Inspected:
    """What is known of a package before a weight is read."""

    source: Source
    family: Plugin[ModelFamily]
    spec: ModelSpec
    identity: Identity


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """Weights in memory, and what they are; nothing has run yet."""

    model: LoadedModel
    package: Package
    family: Plugin[ModelFamily]
    spec: ModelSpec
    identity: Identity
    spot: Spot


class ModelLoader:
    """Used by the loader thread. Everything that computes runs on the device thread, so that other models keep serving."""

    def __init__(
        self,
        plugins: PluginSet,
        settings: WorkerSettings,
        device_thread: DeviceThread,
        start_scheduler: StartScheduler,
        get: Callable[..., Source] = obtain,
    ):
        self._plugins = plugins
        self._settings = settings
        self._device_thread = device_thread
        self._start_scheduler = start_scheduler
        self._get = get

    def load(self, served: ServedModel) -> None:
        """Leaves `served` ready. Raises what went wrong; `load_failure` tells what that means."""
        opened = self.open(served)
        model, spot = opened.model, opened.spot
        served.readiness = Readiness("warming")
        settings = self._execution_settings(served, opened.family.thing, model)
        served.readiness = Readiness("warming", "running the golden check")
        self._self_check(served, opened)
        # After the check: recorded answers are those of the package alone.
        attach(model, find_calibration(opened.package, opened.identity.model_sha256, self._settings.cache_dir))
        scheduler = self._start_scheduler(served, model, settings, spot.accelerator.is_device_fault)
        placed = Placed(spot.engine.name, spot.accelerator.name, spot.accelerator.validated, spot.device.name)
        served.running = Running(model, opened.family.name, opened.spec.surfaces, opened.identity, placed, settings, scheduler, opened.spec.stored.title)
        served.readiness = Readiness("ready")
        _log.info("%s is ready: %s on %s, %s", served.name, opened.family.name, spot.device.name, byte_text(model.memory_bytes))
        gc.collect()
        gc.freeze()  # what loading left behind is never garbage; a full collection would look at all of it each time

    def open(self, served: ServedModel) -> OpenedModel:
        """Everything until the weights are in memory; `served` says how far it is. Raises what went wrong."""
        entry = served.entry
        served.readiness = Readiness("loading", "resolving the model")
        devices = named_devices(entry.device, self._plugins)  # before anything is downloaded
        engines = engines_for(entry.engine, self._plugins)
        if entry.family is not None:
            self._plugins.families.named(entry.family, "family")
        found = self._inspect(served)
        served.family = found.family.name
        needs = needed_capabilities(found.source.package, found.spec)
        budget = entry.memory_budget_gib if entry.memory_budget_gib is not None else self._settings.memory_budget
        spot = place(found.family.thing, found.spec, devices, engines, needs, budget)
        served.plugins = (
            found.family.facts,
            self._plugins.engines.by_name[spot.engine.name].facts,
            replace(self._plugins.accelerators.by_name[spot.accelerator.name].facts, capabilities=tuple(needs)),
        )
        served.readiness = Readiness("loading", f"loading weights on {spot.device.name}")
        model = self._load_weights(served, found, spot)
        return OpenedModel(model, found.source.package, found.family, found.spec, found.identity, spot)

    def _inspect(self, served: ServedModel) -> _Inspected:
        stores = Stores(self._settings.cache_dir, self._settings.accept_licence)

        def progress(label: str, done: int, total: int | None) -> None:
            of = "" if total is None else f" of {byte_text(total)}"
            served.readiness = Readiness("loading", f"resolving the model: {byte_text(done)}{of}")

        source = self._get(served.entry, stores, progress)
        package = source.package
        served.readiness = Readiness("loading", "verifying the package")
        digests = Digests(package)
        digests.check_small(source.recorded)
        family = family_of(package, self._plugins.families, served.entry.family)
        _check_options(family.thing, served.entry.options)
        spec = family.thing.describe(package)
        licence = spec.licence or package.licence
        check_licence(licence, self._settings.accept_licence)
        digests.check(source.recorded, spec.files)
        verified = family.thing.verify(package, digests.of_all(spec.files))
        identity = Identity(package.repo, package.revision, verified.model_sha256, verified.manifest_sha256, licence)
        return _Inspected(source, family, spec, identity)

    def _load_weights(self, served: ServedModel, found: _Inspected, spot: Spot) -> LoadedModel:
        family, spec = found.family.thing, found.spec
        options = {key: value for key, value in served.entry.options.items() if key != DTYPE_OPTION}
        if self._settings.base_path is not None and BASE_PATH_OPTION in family.option_names:
            options.setdefault(BASE_PATH_OPTION, self._settings.base_path)
        placement = Placement(
            spot.accelerator.torch_device(spot.device),
            _dtype(spec, served.entry.options.get(DTYPE_OPTION)),
            self._shares_context(served.entry, family),
            options,
        )
        on_device = f"loading weights on {spot.device.name}"

        def progress(done: int, total: int) -> None:
            served.readiness = Readiness("loading", f"{on_device}: {byte_text(done)} of {byte_text(total)}")

        package = found.source.package
        model = self._device_thread.call(lambda: spot.engine.load(family, package, spec, placement, progress))
        if model.facts.parameters != spec.parameters:
            raise PackageError(
                f"{package.reference} was loaded with {model.facts.parameters} parameters, its files declare {spec.parameters}",
                reason="parameter_count", param="model",
            )  # fmt: skip
        return model

    def _execution_settings(self, served: ServedModel, family: ModelFamily, model: LoadedModel) -> ExecutionSettings:
        """The effective settings; the probe, which also warms the model up, decides on sharing."""
        worker, entry = self._settings, served.entry
        result = self._device_thread.call(lambda: probe(model, batch_invariant=worker.batch_invariant))
        if not result.may_share:
            _log.warning(
                "%s: rows alone and in a batch differ by %.3g (allowed: %g), so each request gets forward passes of its own",
                served.name, result.largest, result.allowed,
            )  # fmt: skip
        window = entry.batch_window_ms if entry.batch_window_ms is not None else worker.batch_window_ms
        return ExecutionSettings(
            enable_shared_context=self._shares_context(entry, family),
            batch_window_ms=window,
            max_num_seqs=entry.max_num_seqs if entry.max_num_seqs is not None else worker.max_num_seqs,
            max_batch_tokens=worker.max_batch_tokens,
            max_queue=worker.max_queue,
            max_queued_tokens=worker.max_queued_tokens,
            result_cache_entries=worker.result_cache_entries,
            share_forwards=result.may_share,
        )

    def _shares_context(self, entry: ModelEntry, family: ModelFamily) -> bool:
        """Raises ConfigError for a model that is told both: who shares a context gets other last bits than who does not."""
        asked = _first_set(entry.enable_shared_context, self._settings.enable_shared_context)
        if asked and self._settings.batch_invariant:
            raise ConfigError(
                "--enable-shared-context and --batch-invariant exclude each other: what is computed once for several questions differs in"
                " the last bits from what each of them computes alone", param="enable_shared_context", fix="Leave one of them out.",
            )  # fmt: skip
        return bool(family.shares_context if asked is None else asked) and not self._settings.batch_invariant

    def _self_check(self, served: ServedModel, opened: OpenedModel) -> None:
        accelerator, model, spot = opened.spot.accelerator, opened.model, opened.spot
        strictness = Strictness(accelerator.tolerance, 0.0 if accelerator.repeats_exactly else accelerator.tolerance)
        requests = golden_requests(model.facts, opened.spec.surfaces)
        answers = self._device_thread.call(lambda: golden_answers(model, requests, strictness))
        identity = opened.identity.model_sha256
        reference = find_reference(opened.package, identity, accelerator.name, self._settings.cache_dir)
        kernels = () if reference is None else unapplied(reference.kernels, accelerator.kernels(spot.device), accelerator.untuned(spot.device))
        result = compare(answers, reference, strictness, kernels)
        served.golden = replace(result, reference=Path(result.reference).name)  # clients need not know our folders
        if kernels:
            _log.warning("%s runs without its recorded kernel choices: %s", served.name, "; ".join(kernels))
        if served.golden.status == "failed":
            raise SelfCheckError(f"answers differ from those recorded in {served.golden.reference}: {served.golden.reason}")


def _check_options(family: ModelFamily, options: Any) -> None:
    if unknown := sorted(set(options) - family.option_names - {DTYPE_OPTION}):
        raise ConfigError(
            f"the family {family.name} has no option {', '.join(unknown)[:200]}; it has {', '.join(sorted({*family.option_names, DTYPE_OPTION}))}",
            reason="unknown_option", param="options",
        )  # fmt: skip


def _dtype(spec: ModelSpec, asked: Any) -> Any:
    if asked is None:
        return spec.dtypes[0]
    if asked not in spec.dtypes:
        raise ConfigError(
            f"options.dtype: this model offers {' and '.join(spec.dtypes)}, found {asked!r:.60}", reason="unknown_option", param="options"
        )
    return asked


def _first_set(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


