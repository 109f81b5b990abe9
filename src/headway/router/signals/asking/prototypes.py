"""How near a text is to a bank of candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headway.router.config.document.model_signals import PrototypeScoring

Matrix = npt.NDArray[np.float32]


def similarity(query: Matrix, candidates: Matrix, scoring: PrototypeScoring | None, mean: bool = False) -> float:
    """The highest cosine of `query` [width] to `candidates` [n, width], n > 0; the mean one; or, with prototype scoring, a mixture of the best
    prototype and the mean of the best few."""
    if scoring is None or not scoring.enabled:
        cosines = candidates @ query
        return float(cosines.mean() if mean else cosines.max())
    cosines = np.sort(prototypes(candidates, scoring) @ query)[::-1]
    return float(scoring.best_weight * cosines[0] + (1 - scoring.best_weight) * cosines[: scoring.top_m].mean())


def prototypes(candidates: Matrix, scoring: PrototypeScoring) -> Matrix:
    """Candidates in their order, each joined to the first prototype that is near enough, as unit means; then the first of the largest clusters."""
    members: list[list[int]] = []
    centres: list[Matrix] = []
    for at, vector in enumerate(candidates):
        near = next((n for n, centre in enumerate(centres) if float(centre @ vector) >= scoring.cluster_similarity_threshold), None)
        if near is None:
            members.append([at])
            centres.append(vector)
        else:
            members[near].append(at)
            centres[near] = _unit_mean(candidates[members[near]])
    if scoring.max_prototypes and len(centres) > scoring.max_prototypes:
        order: Sequence[int] = sorted(range(len(centres)), key=lambda n: -len(members[n]))[: scoring.max_prototypes]
        centres = [centres[n] for n in order]
    return np.stack(centres)


def _unit_mean(vectors: Matrix) -> Matrix:
    mean = vectors.mean(axis=0)
    length = np.linalg.norm(mean)
    found: Matrix = mean / length if length > 0 else vectors[0]
    return found
