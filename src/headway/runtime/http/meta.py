"""`meta`: which model, in which arithmetic, on which device gave an answer, and how long it took."""

from __future__ import annotations

from typing import Any

from headway.runtime.execution.planned import Planned
from headway.runtime.served_model import Running


def add_meta(body: dict[str, Any], running: Running, planned: Planned, wanted: bool) -> None:
    """Complete the `meta` that the plan left in `body`, which gets one when it is `wanted`.

    An embedding's `representation` always names its model: vectors of different ones must not be mixed.
    """
    given: dict[str, Any] = body.pop("meta", None) or {}
    if "representation" in given:
        given["representation"] = {"model_sha256": running.identity.model_sha256, **given["representation"]}
    if wanted:
        given = {**_facts(running), "queue_ms": _ms(planned.queue_seconds), "compute_ms": _ms(planned.forward_seconds), **given}
    if given:
        body["meta"] = given


def _facts(running: Running) -> dict[str, Any]:
    settings = running.settings
    return {
        "revision": running.identity.revision,
        "model_sha256": running.identity.model_sha256,
        "enable_shared_context": settings.enable_shared_context,
        "batch_window_ms": settings.batch_window_ms,
        "max_num_seqs": settings.max_num_seqs,
        "numerics": running.model.facts.dtype,
        "engine": running.placed.engine,
        "accelerator": running.placed.accelerator,
        "device": running.placed.device,
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
