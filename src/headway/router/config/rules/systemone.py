"""Rules about questions of one's own, and the deployments that answer them."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.deployments import DecisionModelBinding, ModelDeployment
from headway.router.config.document.document import Document
from headway.router.config.document.system_one_signals import SystemOneRule
from headway.router.config.rules.profiles import did_you_mean, profiles
from headway.router.deployments.specification import catalog_of, declared, default_decision_model

_FEWEST, _MOST = 2, 255  # options of the question that chooses a model


def question_deployments(document: Document) -> Iterator[Diagnostic]:
    """Every question goes to a deployment of a model runtime that never truncates."""
    deployments = declared(document)
    for profile in profiles(document):
        rules = (profile.routing.signals.systemone if profile.routing.signals else None) or []
        for index, rule in enumerate(rules):
            path = (*profile.path, "signals", "systemone", index)
            yield from _answerable(rule.deployment, (*path, "deployment"), f'systemone rule "{rule.name}"', document)
        yield from _colliding_answers(rules, (*profile.path, "signals", "systemone"), default_decision_model(document))
    chosen = _chosen(document)
    if chosen is not None and chosen.deployment not in deployments:
        path = ("global", "model_catalog", "system", "decision_model", "deployment")
        message = f'the decision model is deployment "{chosen.deployment}", which is not there'
        yield Diagnostic("deployment_unknown", message, path, did_you_mean(chosen.deployment, deployments))


def _chosen(document: Document) -> DecisionModelBinding | None:
    catalog = catalog_of(document)
    return catalog.system.decision_model if catalog and catalog.system else None


def _answerable(name: str | None, path: Path, whose: str, document: Document) -> Iterator[Diagnostic]:
    deployments = declared(document)
    key = name or default_decision_model(document)
    deployment = deployments.get(key)
    if deployment is None and name is None and _chosen(document) is not None:
        return  # told once, where the decision model is chosen
    if deployment is None:
        also = "" if name else ", the decision model,"
        message = f'{whose} asks deployment "{key}"{also} which is not there'
        yield Diagnostic("deployment_unknown", message, path, did_you_mean(key, deployments))
        return
    complaint = _no_decision_model(deployment)
    if complaint is not None:
        yield Diagnostic("deployment_unfit", f'{whose} asks deployment "{key}": {complaint}', path)


def _no_decision_model(deployment: ModelDeployment) -> str | None:
    tokens = (deployment.input.max_tokens if deployment.input else None) or 0
    overflow = (deployment.input.overflow if deployment.input else None) or "reject"
    if (overflow == "reject" and not tokens) or (overflow == "window" and tokens):
        return None
    return "a decision model never truncates; leave input out, or set overflow: window with max_tokens"


def _colliding_answers(rules: list[SystemOneRule], path: Path, decision_model: str) -> Iterator[Diagnostic]:
    """A set's answers are called `<rule>.<label>`: no other question to the same deployment may have that name."""
    places = {(rule.deployment or decision_model, rule.name): index for index, rule in enumerate(rules)}
    for rule in rules:
        for label in rule.question.labels if rule.question.type == "set" else ():
            other = places.get((rule.deployment or decision_model, f"{rule.name}.{label.key}"))
            if other is not None:
                message = f'"{rule.name}.{label.key}" is what the answer for label "{label.key}" of set "{rule.name}" is called'
                yield Diagnostic("name_ambiguous", message, (*path, other, "name"), "Rename one of them")


def model_choosers(document: Document) -> Iterator[Diagnostic]:
    """`algorithm.decision`: 2 to 255 distinct models, descriptions for these only, and a deployment that answers."""
    for profile in profiles(document):
        for index, decision in enumerate(profile.routing.decisions or ()):
            settings = decision.algorithm.decision if decision.algorithm else None
            if settings is None:
                continue
            path = (*profile.path, "decisions", index, "algorithm", "decision")
            whose = f'decision "{decision.name}"'
            yield from _answerable(settings.deployment, (*path, "deployment"), whose, document)
            models = [ref.model for ref in decision.modelRefs or ()]
            if not _FEWEST <= len(models) <= _MOST or len(set(models)) != len(models):
                message = f"{whose} lets a model choose among {_FEWEST} to {_MOST} distinct modelRefs; found {len(models)}"
                yield Diagnostic("models_uncountable", message, (*path[:-2], "modelRefs"))
            for name in settings.candidates or {}:
                if name not in models:
                    message = f'{whose} describes candidate "{name}", which is not one of its modelRefs'
                    yield Diagnostic("model_undeclared", message, (*path, "candidates", name), did_you_mean(name, filter(None, models)))
