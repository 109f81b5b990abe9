"""`golden record` and `golden verify`: what a model answers, kept with the circumstances, and compared later."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch

from headway.artifacts.bounded_json import read_json_object
from headway.errors import ConfigError, RequestError
from headway.host.instruction_set import instruction_set
from headway.runtime import model_records
from headway.runtime.loaded_model import SURFACES, Surface
from headway.runtime.one_model import OneModel
from headway.runtime.selfcheck import golden_reference
from headway.runtime.selfcheck.golden import Strictness, compare, golden_answers
from headway.runtime.selfcheck.golden_reference import GoldenReference, find_reference, read_reference, write_reference
from headway.runtime.selfcheck.golden_requests import GoldenRequest, golden_requests
from headway.runtime.selfcheck.kernel_choices import unapplied
from headway.runtime.served_model import GoldenResult
from headway.version import __version__
from headway.wire.classify import parse_classify
from headway.wire.decision_body import read_decision_body
from headway.wire.embeddings import parse_embeddings
from headway.wire.rerank import parse_rerank

_PARSERS: Final[Mapping[Surface, Callable[[Mapping[str, Any]], Any]]] = {
    "decisions": read_decision_body, "classify": parse_classify, "embeddings": parse_embeddings, "rerank": parse_rerank,
}  # fmt: skip
_MAX_REQUESTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """`answered`: names of the requests."""

    path: Path
    model_sha256: str
    accelerator: str
    answered: tuple[str, ...]
    recorded: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


@dataclass(frozen=True, slots=True)
class Verified:
    """`changed`: what is not as it was when the answers were recorded, name -> (then, now)."""

    result: GoldenResult
    tolerance: float
    changed: Mapping[str, tuple[Any, Any]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self.result) | {"tolerance": self.tolerance, "changed": {name: list(pair) for name, pair in self.changed.items()}}


def record(one: OneModel, given: Mapping[str, Any], output: Path | None = None, cache_dir: str | None = None) -> Recorded:
    """Answer the default requests and those of `given` (name -> {surface, body}), and write the answers to `output`, or to
    where the self-check of this model looks.

    Raises ConfigError (`invalid_golden_requests`), SelfCheckError when the model does not answer twice the same.
    """
    opened = one.opened
    accelerator = opened.spot.accelerator
    answers = _answers(one, given)
    identity = opened.identity.model_sha256
    beside = golden_reference.beside(opened.package)
    place = beside if model_records.is_ours(opened.package, beside, cache_dir) else golden_reference.cached(identity, cache_dir)
    path = output or place
    kernels = {name: version for name, version in accelerator.kernels(opened.spot.device).items() if isinstance(version, str)}
    circumstances = _circumstances(one)
    write_reference(path, identity, accelerator.name, answers, kernels, requests=given, recorded=circumstances)
    return Recorded(path, identity, accelerator.name, tuple(answers), circumstances)


def verify(one: OneModel, source: Path | None = None, tolerance: float | None = None, cache_dir: str | None = None) -> Verified:
    """Ask everything again that was recorded (in `source`, or where `record` writes) and compare.

    `tolerance` None: that of the device (1e-3 on CPUs). Raises ConfigError (`no_golden_reference`, `golden_of_another_model`).
    """
    opened = one.opened
    reference = _reference(one, source, cache_dir)
    accelerator, device = opened.spot.accelerator, opened.spot.device
    allowed = accelerator.tolerance if tolerance is None else tolerance
    kernels = unapplied(reference.kernels, accelerator.kernels(device), accelerator.untuned(device))
    result = compare(_answers(one, reference.requests), reference, Strictness(allowed), kernels)
    now = _circumstances(one)
    names = [name for name in now if name != "at" and name in reference.recorded]
    return Verified(result, allowed, {name: (reference.recorded[name], now[name]) for name in names if reference.recorded[name] != now[name]})


def read_requests(path: Path) -> dict[str, Any]:
    """`{NAME: {"surface": SURFACE, "body": BODY}}`. Raises ConfigError (`invalid_golden_requests`), ArtifactError for no JSON."""
    given = read_json_object(path)
    if len(given) > _MAX_REQUESTS:
        raise _wrong(f"{path} holds {len(given)} requests, the limit is {_MAX_REQUESTS}")
    _parsed(given)
    return given


def _answers(one: OneModel, given: Mapping[str, Any]) -> dict[str, Any]:
    opened = one.opened
    accelerator = opened.spot.accelerator
    requests = golden_requests(opened.model.facts, opened.spec.surfaces)
    if taken := sorted({each.name for each in requests} & given.keys()):
        raise _wrong(f"the name {taken[0]!r} is that of a default request")
    more = _parsed(given)
    if unserved := [each for each in more if each.surface not in opened.model.planners]:
        raise _wrong(f"{unserved[0].name!r} is a request for {unserved[0].surface}, which the model does not serve")
    strictness = Strictness(accelerator.tolerance, 0.0 if accelerator.repeats_exactly else accelerator.tolerance)
    try:
        return one.device.call(lambda: golden_answers(opened.model, [*requests, *more], strictness))
    except RequestError as error:
        raise _wrong(error.message) from error


def _parsed(given: Mapping[str, Any]) -> Sequence[GoldenRequest]:
    found = []
    for name, each in given.items():
        if not isinstance(each, Mapping) or each.keys() != {"surface", "body"} or each["surface"] not in SURFACES or not isinstance(each["body"], dict):
            raise _wrong(f"{name[:100]!r} must be an object of surface (one of {', '.join(SURFACES)}) and body")
        try:
            found.append(GoldenRequest(name, each["surface"], _PARSERS[each["surface"]](each["body"])))
        except RequestError as error:
            raise _wrong(f"{name[:100]!r}: {error.message}") from error
    return found


def _reference(one: OneModel, source: Path | None, cache_dir: str | None) -> GoldenReference:
    opened = one.opened
    identity, accelerator = opened.identity.model_sha256, opened.spot.accelerator.name
    if source is None:
        found = find_reference(opened.package, identity, accelerator, cache_dir)
    else:
        found = read_reference(source, accelerator)
    if found is None:
        where = "" if source is None else f" in {source}"
        raise ConfigError(f"no answers of {opened.package.reference} on {accelerator} are recorded{where}", reason="no_golden_reference",
                          param="model", fix="Run `vllm-srun golden record` first.")  # fmt: skip
    if found.model_sha256 != identity:
        raise ConfigError(
            f"{source} holds answers of another model: it names {found.model_sha256[:16]}..., the package is {identity[:16]}...",
            reason="golden_of_another_model", param="reference", fix="Record the answers of this model, or restore its files.",
        )  # fmt: skip
    return found


def _circumstances(one: OneModel) -> dict[str, Any]:
    cpu = instruction_set()
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "headway": __version__, "torch": torch.__version__,
        "python": platform.python_version(), "cpu": cpu.model, "cpu_features": sorted(cpu.flags), "threads": torch.get_num_threads(),
        "dtype": one.opened.model.facts.dtype, "family": one.opened.family.name, "engine": one.opened.spot.engine.name,
    }  # fmt: skip


def _wrong(problem: str) -> ConfigError:
    return ConfigError(problem, reason="invalid_golden_requests", param="requests", fix="See docs/runtime.md for the format.")
