"""The self-check: every model answers its golden requests twice, the same way, and as recorded where there is a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from headway.errors import SelfCheckError
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.plan import Plan, run_plan
from headway.runtime.selfcheck.agreement import difference, is_finite
from headway.runtime.selfcheck.golden_reference import GoldenReference
from headway.runtime.selfcheck.golden_requests import GoldenRequest
from headway.runtime.served_model import GoldenResult

KERNELS_NOT_APPLIED: Final = "kernel choices not applied"
_DEFECTS: Final = ("invalid_model_output", "unavailable")  # other codes mean that the fixed text does not suit the model


@dataclass(frozen=True, slots=True)
class Strictness:
    """`tolerance` against recorded answers; `repeat_tolerance` between two runs, 0 where equal work gives equal bits."""

    tolerance: float
    repeat_tolerance: float = 0.0


def golden_answers(model: LoadedModel, requests: Sequence[GoldenRequest], strictness: Strictness) -> dict[str, Any]:
    """Each request twice, on the exact path, on the calling thread (the device thread); answers by request name.

    Raises SelfCheckError when two runs differ, when a number is not finite, or when an item has no valid output.
    """
    answers: dict[str, Any] = {}
    for each in requests:
        planner = model.planners[each.surface]
        first, second = (_run(model, planner(each.request)) for _ in range(2))
        if (apart := difference(first, second)) > strictness.repeat_tolerance:
            raise SelfCheckError(f"{each.name}: two runs of the same request differ by {apart:.3g}")
        if not is_finite(first):
            raise SelfCheckError(f"{each.name}: the answer holds a number that is not finite")
        if (failure := _failure_in(first)) is not None:
            raise SelfCheckError(f"{each.name}: an item failed: {failure}")
        answers[each.name] = orjson.loads(orjson.dumps(first, option=orjson.OPT_SERIALIZE_NUMPY))
    return answers


def _run(model: LoadedModel, plan: Plan) -> dict[str, Any]:
    model.forget()
    return run_plan(model, plan)


def compare(
    answers: Mapping[str, Any], reference: GoldenReference | None, strictness: Strictness, unapplied: Sequence[str] = ()
) -> GoldenResult:
    """Answers against the record. Questions are counted one by one, answers of other surfaces as one each.

    `unapplied` are sentences on recorded kernels that this machine does not run: then nothing can be proven.
    """
    checked = sum(len(_parts(answer)) for answer in answers.values())
    if reference is None:
        return GoldenResult("unverified", checked, 0, "")
    if unapplied:
        return GoldenResult("unverified", checked, 0, reference.source, f"{KERNELS_NOT_APPLIED}: {'; '.join(unapplied)}")
    wrong: list[str] = []
    for name, answer in answers.items():
        recorded = _parts(reference.answers.get(name))
        for part, value in _parts(answer).items():
            apart = difference(value, recorded.get(part))
            if apart > strictness.tolerance:
                wrong.append(f"{name}{f' {part}' if part else ''} is off by {apart:.3g}")
    missing = sorted(reference.answers.keys() - answers.keys() - reference.requests.keys())
    wrong += [f"{name} was recorded and is not answered" for name in missing]
    if wrong:
        reason = f"{'; '.join(wrong[:5])} (allowed: {strictness.tolerance:g})"
        return GoldenResult("failed", checked, checked - min(checked, len(wrong)), reference.source, reason)
    return GoldenResult("matched", checked, checked, reference.source)


def _parts(answer: Any) -> dict[str, Any]:
    """The questions of a decisions answer one by one, else the answer as one part, without its counts of tokens."""
    if not isinstance(answer, Mapping):
        return {}
    if isinstance(answer.get("answers"), Mapping):
        return dict(answer["answers"])
    return {"": {key: value for key, value in answer.items() if key != "usage"}}


def _failure_in(answer: Any) -> str | None:
    """The code of an item that the model itself spoiled, anywhere in an answer."""
    if isinstance(answer, Mapping):
        error = answer.get("error")
        code = error.get("code") if isinstance(error, Mapping) else error
        if code in _DEFECTS:
            return str(code)
        return next((found for value in answer.values() if (found := _failure_in(value)) is not None), None)
    if isinstance(answer, list | tuple):
        return next((found for value in answer if (found := _failure_in(value)) is not None), None)
    return None
