"""Settings of models that stood in the modules: now a deployment runs the model, and a binding says what for."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Final, NamedTuple

from ruamel.yaml.comments import CommentedMap

from headway.router.config.diagnostics import Path
from headway.router.config.migration.legacy_models import is_retired, repository_of
from headway.router.config.migration.tree import Mapping, Tree

_MODULES: Final[Path] = ("global", "model_catalog", "modules")
_LABELS, _SPANS = "label_distribution.v1", "token_spans.v1"


class Module(NamedTuple):
    """`consumer` is its name among the bindings, and in `global.model_catalog.system`."""

    path: tuple[str, ...]
    consumer: str
    contract: str


MODULES: Final = (
    Module(("prompt_guard",), "prompt_guard", _LABELS),
    Module(("classifier", "domain"), "domain_classifier", _LABELS),
    Module(("classifier", "pii"), "pii_classifier", _SPANS),
    Module(("hallucination_mitigation", "fact_check"), "fact_check_classifier", _LABELS),
    Module(("hallucination_mitigation", "detector"), "hallucination_detector", _SPANS),
    Module(("feedback_detector",), "feedback_detector", _LABELS),
    Module(("modality_detector", "classifier"), "modality_detector", _LABELS),
)
_NLI: Final = "natural language inference is not asked any more"
_DETECTED: Final = "the runtime sees the architecture in the package"


def migrate_modules(tree: Tree) -> None:
    for module in MODULES:
        settings = tree.mapping(*map(str, _MODULES), *module.path)
        if settings is not None:
            _module(tree, module, settings, (*_MODULES, *module.path))
    mitigation: Path = (*_MODULES, "hallucination_mitigation")
    for key in ("explainer", "nli_model"):
        tree.drop(tree.mapping(*map(str, mitigation)), key, mitigation, _NLI)
    detector: Path = (*mitigation, "detector")
    for key in ("enable_nli_filtering", "nli_entailment_threshold", "include_explanation", "backend", "endpoint"):
        tree.drop(tree.mapping(*map(str, detector)), key, detector, _NLI if "nli" in key else "the detector is what its binding names")
    _system(tree)


def _module(tree: Tree, module: Module, settings: Mapping, path: Path) -> None:
    for key in ("variant", "model_type", "use_modernbert", "use_mmbert_32k"):
        tree.drop(settings, key, path, _DETECTED)
    for key in [key for key in settings if key.endswith("_mapping_path")]:
        tree.drop(settings, key, path, "labels are those that the model brings")
    given = settings.get("model_id") or settings.get("model_path")
    if given is None and settings.get("model_ref") is not None:
        given = (tree.mapping("global", "model_catalog", "system") or {}).get(module.consumer)
    repository = repository_of(given) or (given if isinstance(given, str) and given.count("/") == 1 and not given.startswith("models/") else None)
    if given is not None and repository is None:
        tree.open(path, f"{given} is no model that is known; run it as a deployment and bind {module.consumer} to it")
    if repository is not None:
        _bind(tree, module, repository, settings, path)
    for key in ("model_id", "model_path", "use_cpu", "max_sequence_length", "window"):
        if key in settings and (repository is not None or given is None):
            tree.drop(settings, key, path, f"the deployment that bindings.{module.consumer} names says so")
    if repository is not None and "model_ref" in settings:
        tree.drop(settings, "model_ref", path, f"the model is the one that bindings.{module.consumer} names")


def _bind(tree: Tree, module: Module, repository: str, settings: Mapping, path: Path) -> None:
    """A deployment of the model, unless something answers for the consumer already."""
    bindings = tree.made("global", "model_catalog", "bindings")
    if module.consumer in bindings:
        return
    name = module.consumer.replace("_", "-")
    deployment = CommentedMap(provider="model_runtime", artifact=repository)
    if settings.get("use_cpu") is not False:
        deployment["device"] = "cpu"
    length = settings.get("max_sequence_length")
    window = settings.get("window")
    if isinstance(length, int) and length > 0:
        deployment["input"] = CommentedMap(max_tokens=length, overflow="window" if isinstance(window, MutableMapping) else "truncate")
    tree.made("global", "model_catalog", "deployments").setdefault(name, deployment)
    bindings[module.consumer] = CommentedMap(deployment=name, contract=module.contract)
    tree.done(path, f"its model runs as deployment {name} ({repository}); check its threshold, which belongs to a model")


def _system(tree: Tree) -> None:
    path: Path = ("global", "model_catalog", "system")
    system = tree.mapping(*map(str, path))
    for role, value in list((system or {}).items()):
        if role == "hallucination_explainer" or is_retired(value):
            tree.drop(system, role, path, _NLI)
            continue
        repository = repository_of(value)
        if system is not None and repository is not None and repository != value:
            system[role] = repository
            tree.done((*path, role), f"{value} is {repository} now")

