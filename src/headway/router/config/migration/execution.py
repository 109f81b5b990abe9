"""Deployments of the engines that earlier versions had inside the router."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import PurePosixPath
from typing import Any, Final

from headway.router.config.diagnostics import Path
from headway.router.config.migration.legacy_models import is_retired, repository_of
from headway.router.config.migration.tree import Mapping, Tree, remove

_REMOVED_PROVIDERS: Final = frozenset({"candle", "ort", "onnxruntime", "openvino"})
_DEVICES: Final = {"cuda": "cuda", "rocm": "rocm", "migraphx": "rocm"}
_CATALOG: Final[Path] = ("global", "model_catalog")
_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "exact": {},
    "batching": {},
    "shared_context": {"enable_shared_context": True},
    "max_speed": {"enable_shared_context": True},
}
"""What earlier profiles of a deployment stood for."""


def migrate_deployments(tree: Tree) -> None:
    deployments = tree.mapping("global", "model_catalog", "deployments")
    for name, deployment in list((deployments or {}).items()):
        path = (*_CATALOG, "deployments", str(name))
        if not isinstance(deployment, MutableMapping):
            continue
        if is_retired(deployment.get("artifact")) or is_retired(deployment.get("external_model")):
            tree.drop(deployments, name, path[:-1], "models of natural language inference are not asked any more")
            continue
        _provider(tree, deployment, path)
        _artifact(tree, deployment, path)
        _fields(tree, deployment, path)
    for where in (_CATALOG, ("global",), ()):
        for engine in ("candle", "ort", "openvino"):
            tree.drop(tree.mapping(*map(str, where)), engine, where, "models are served by provider model_runtime, which needs no such settings")
    _graph_heads(tree)


def _provider(tree: Tree, deployment: Mapping, path: Path) -> None:
    provider = str(deployment.get("provider") or "").strip().lower()
    if provider not in _REMOVED_PROVIDERS:
        return
    device, remark = runtime_device(provider, deployment.get("device"))
    deployment["provider"] = "model_runtime"
    deployment["device"] = device
    tree.done(path, f"provider {provider} is model_runtime now, on device {device}{remark}")


def runtime_device(provider: str, device: Any) -> tuple[str, str]:
    """The device of the model runtime for one of an earlier engine, and a remark when it means something else."""
    value = str(device or "cpu").strip().lower()
    kind, _, number = value.partition(":")
    if kind == "metal":
        return "mps", ""
    if provider == "openvino" and kind not in _DEVICES:
        return "cpu", "" if kind == "cpu" else f" (OpenVINO's {value} has no equal; xpu:N is an Intel GPU)"
    if kind in _DEVICES and (number or "0").isdigit():
        return f"{_DEVICES[kind]}:{number or '0'}", ""
    return "cpu", "" if kind == "cpu" else f" ({value} is no device that is known)"


def _artifact(tree: Tree, deployment: Mapping, path: Path) -> None:
    artifact = deployment.get("artifact")
    repository = repository_of(artifact)
    if repository is not None and repository != artifact:
        deployment["artifact"] = repository
        remove(deployment, "revision")
        tree.done((*path, "artifact"), f"{artifact} is {repository} now; check thresholds, which belong to a model")
    elif isinstance(artifact, str) and not PurePosixPath(artifact).is_absolute() and (artifact.count("/") != 1 or artifact.startswith("models/")):
        tree.open((*path, "artifact"), f"{artifact} is a relative path; write the Hub repository or the absolute path of the package")


def _fields(tree: Tree, deployment: Mapping, path: Path) -> None:
    precision = deployment.get("precision")
    if precision == "fp16":
        tree.drop(deployment, "precision", path, "the runtime chooses; dtype: float16 asks for half precision on a GPU")
    else:
        tree.drop(deployment, "precision", path, "the runtime reads the package's own precision")
    for key in ("custom_ops_profile", "compilation_cache_dir", "backend", "engine", "model_path"):
        tree.drop(deployment, key, path, "the runtime chooses kernels and graphs itself")
    if deployment.get("use_cpu") is True:
        deployment.setdefault("device", "cpu")
    tree.drop(deployment, "use_cpu", path, "device says where the model runs")
    if "profile" in deployment:
        meant = _PROFILES.get(str(deployment["profile"]))
        if meant is None:
            tree.open((*path, "profile"), f"{deployment['profile']} is no profile that is known; set engine arguments (max_num_seqs, dtype, ...)")
        for key, value in (meant or {}).items():
            deployment.setdefault(key, value)
        said = ", ".join(f"{key}: {str(value).lower()}" for key, value in (meant or {}).items()) or "what the runtime does anyway"
        tree.drop(deployment, "profile", path, f"it stood for {said}")
    process = deployment.get("process")
    if process is not None:
        tree.drop(deployment, "process", path, "each deployment and replica has a process of its own")


def _graph_heads(tree: Tree) -> None:
    """A head was once the path of a graph file; now it is the name of a head."""
    places: list[tuple[Path, Mapping | None]] = [((*_CATALOG, "bindings"), tree.mapping("global", "model_catalog", "bindings"))]
    places += [((*path, "model_bindings"), routing.get("model_bindings")) for path, routing in tree.routings()]
    for path, bindings in places:
        if not isinstance(bindings, MutableMapping):
            continue
        tree.drop(bindings, "hallucination_explainer", path, "explanations by an NLI model are gone")
        for consumer, binding in bindings.items():
            head = binding.get("head") if isinstance(binding, MutableMapping) else None
            if isinstance(head, str) and ("/" in head or head.endswith((".onnx", ".xml"))):
                tree.drop(binding, "head", (*path, consumer), f"{head} is a graph file; the runtime chooses graphs")
