"""Rules about projections: what they read is there, and nothing reads itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.model_catalog import KnowledgeBase
from headway.router.config.document.projections import Projections, ProjectionScoreInput
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.rules.profiles import did_you_mean, profiles
from headway.router.deployments.specification import catalog_of
from headway.router.projections.graph import ProjectionCycleError, ordered
from headway.router.signals.table import KIND_OF_TYPE

_KB_METRICS = ("best_score", "best_matched_score")  # every knowledge base has these


def projections(document: Document) -> Iterator[Diagnostic]:
    catalog = catalog_of(document)
    bases = {base.name: base for base in (catalog.kbs if catalog else None) or ()}
    for profile in profiles(document):
        if profile.routing.projections is not None:
            yield from _one(profile.routing, profile.routing.projections, (*profile.path, "projections"), bases)


def _one(routing: RecipeRouting, given: Projections, path: Path, bases: Mapping[str, KnowledgeBase]) -> Iterator[Diagnostic]:
    scores = {score.name: index for index, score in enumerate(given.scores or ())}
    sources: dict[str, str] = {}
    for at, mapping in enumerate(given.mappings or ()):
        if mapping.source not in scores:
            message = f'mapping "{mapping.name}" reads score "{mapping.source}", which is not there'
            yield Diagnostic("score_undeclared", message, (*path, "mappings", at, "source"), did_you_mean(mapping.source, scores))
        for index, output in enumerate(mapping.outputs):
            if output.name in sources:
                yield Diagnostic("name_repeated", f'output "{output.name}" stands there twice', (*path, "mappings", at, "outputs", index))
            sources[output.name] = mapping.source
    for collection in ("partitions", "scores", "mappings"):
        names = [each.name for each in getattr(given, collection) or ()]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Diagnostic("name_repeated", f'{collection[:-1]} "{name}" stands there twice', (*path, collection, index, "name"))
    yield from _members(routing, given, path)
    yield from _inputs(routing, given, path, sources, bases)
    yield from _cycles(given, path)


def _members(routing: RecipeRouting, given: Projections, path: Path) -> Iterator[Diagnostic]:
    """All members of a partition are domains, or all are embedding rules."""
    signals = routing.signals
    domains = {rule.name for rule in (signals.domains if signals else None) or ()}
    embeddings = {rule.name for rule in (signals.embeddings if signals else None) or ()}
    for at, partition in enumerate(given.partitions or ()):
        for index, member in enumerate(partition.members):
            if member not in domains | embeddings:
                message = f'partition "{partition.name}" has member "{member}", which is no domain and no embedding rule'
                advice = did_you_mean(member, domains | embeddings)
                yield Diagnostic("signal_undeclared", message, (*path, "partitions", at, "members", index), advice)
        members = set(partition.members)
        if members <= domains | embeddings and not (members <= domains or members <= embeddings):
            message = f'partition "{partition.name}" mixes domains and embedding rules'
            yield Diagnostic("members_mixed", message, (*path, "partitions", at, "members"))


def _inputs(
    routing: RecipeRouting, given: Projections, path: Path, sources: Mapping[str, str], bases: Mapping[str, KnowledgeBase]
) -> Iterator[Diagnostic]:
    for at, score in enumerate(given.scores or ()):
        for index, each in enumerate(score.inputs):
            place = (*path, "scores", at, "inputs", index)
            if each.type == "kb_metric":
                yield from _metric(each, place, bases)
                continue
            known = _readable(routing, given, each, sources)
            if each.name not in known:
                what = f"{each.type} signal" if each.type != "projection" else "output" if each.value_source == "confidence" else "score"
                message = f'score "{score.name}" reads {what} "{each.name}", which is not there'
                yield Diagnostic("signal_undeclared", message, (*place, "name"), did_you_mean(each.name, known))


def _readable(routing: RecipeRouting, given: Projections, each: ProjectionScoreInput, sources: Mapping[str, str]) -> set[str]:
    if each.type == "projection":
        return set(sources) if each.value_source == "confidence" else {score.name for score in given.scores or ()}
    kind = KIND_OF_TYPE.get(each.type)
    rules = getattr(routing.signals, kind.collection, None) if kind and routing.signals else None
    names = {name for rule in rules or () for name in (kind.names(rule) if kind else ())}
    if each.type == "systemone":  # a question's answer, or one of its options
        names |= {f"{rule.name}:{key}" for rule in rules or () for key in rule.question.keys}
    if each.type == "complexity":
        names |= {rule.name for rule in rules or ()}
    return names


def _metric(each: ProjectionScoreInput, place: Path, bases: Mapping[str, KnowledgeBase]) -> Iterator[Diagnostic]:
    base = bases.get(each.kb or "")
    if base is None:
        yield Diagnostic("kb_undeclared", f'knowledge base "{each.kb}" is not there', (*place, "kb"), did_you_mean(each.kb, bases))
        return
    metrics = (*_KB_METRICS, *(metric.name for metric in base.metrics or ()))
    if each.metric not in metrics:
        message = f'knowledge base "{base.name}" has no metric "{each.metric}"'
        yield Diagnostic("metric_undeclared", message, (*place, "metric"), did_you_mean(each.metric, metrics))


def _cycles(given: Projections, path: Path) -> Iterator[Diagnostic]:
    try:
        ordered(given)
    except ProjectionCycleError as error:
        yield Diagnostic("score_cycle", error.message, (*path, "scores"))
