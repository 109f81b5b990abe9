"""In which order scores and mappings of a recipe are computed."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from headway.errors import ConfigError
from headway.router.config.document.projections import ProjectionMapping, Projections, ProjectionScore


class ProjectionCycleError(ConfigError):
    """Scores that need each other."""

    reason = "projection_cycle"


def ordered(projections: Projections) -> list[ProjectionScore | ProjectionMapping]:
    """Each score after the scores and mappings that it reads, each mapping after its score. Raises ProjectionCycleError, which names the cycle."""
    parts = {("score", score.name): score for score in projections.scores or ()} | {
        ("mapping", mapping.name): mapping for mapping in projections.mappings or ()
    }  # type: dict[tuple[str, str], ProjectionScore | ProjectionMapping]
    needs = dependencies(projections)
    try:
        return [parts[key] for key in TopologicalSorter(needs).static_order() if key in parts]
    except CycleError as error:
        circle = " -> ".join(name for _, name in reversed(error.args[1]))
        raise ProjectionCycleError(f"projections need each other: {circle}", param="routing.projections", fix="Break the circle.") from None


def dependencies(projections: Projections) -> Mapping[tuple[str, str], set[tuple[str, str]]]:
    """What each score and mapping reads, as (`score` or `mapping`, name). An input reads the confidence of a mapping's output, anything else of a
    score."""
    made_by = {output.name: ("mapping", mapping.name) for mapping in projections.mappings or () for output in mapping.outputs}
    scores = {score.name for score in projections.scores or ()}
    needs: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for score in projections.scores or ():
        read = [given for given in score.inputs if given.type == "projection"]
        bands = {made_by[given.name] for given in read if given.value_source == "confidence" and given.name in made_by}
        needs["score", score.name] = bands | {("score", given.name) for given in read if given.value_source != "confidence" and given.name in scores}
    for mapping in projections.mappings or ():
        needs["mapping", mapping.name] = {("score", mapping.source)} if mapping.source in scores else set()
    return needs
