"""`GET /v1/models`: one document for OpenAI's clients (`data`), TypeSafe's (`models`) and the router."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from headway.runtime.http.health import API_VERSION
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import HeadFacts
from headway.runtime.quality.record import quality_notes, readout_of
from headway.runtime.served_model import Running, ServedModel, ServedModels
from headway.wire.models import DecisionModel, decision_model

_OWNER = "headway"


def models_document(models: ServedModels, started: float, limits: dict[str, int]) -> dict[str, Any]:
    """`started` in seconds since the epoch."""
    return {
        "object": "list",
        "api_version": API_VERSION,
        "data": [card(model, started) for model in models.models],
        "models": typesafe_list(models, started, lambda model: True),
        "limits": limits,
    }


def typesafe_list(models: ServedModels, started: float, which: Callable[[ServedModel], bool]) -> list[DecisionModel]:
    """Entries as TypeSafe's clients read them."""
    return [decision_model(model.name, _description(model), started) for model in models.models if which(model)]


def decision_models(models: ServedModels, started: float) -> dict[str, Any]:
    """`GET /v1/systemone/models`."""
    return {"models": typesafe_list(models, started, _decides)}


def card(model: ServedModel, started: float) -> dict[str, Any]:
    """Before the model is loaded: its name and how far it is."""
    head = {"id": model.name, "object": "model", "created": int(started), "owned_by": _OWNER, "family": model.family or "unknown"}
    running = model.running
    loaded = _loaded(running) if running is not None else {"surfaces": []}
    golden = {key: value for key, value in asdict(model.golden).items() if key != "reason" or value is not None}
    state = {
        "ready": model.is_ready, "status": model.readiness.state, "reason": model.readiness.reason, "golden": golden,
        "plugins": [asdict(plugin) for plugin in model.plugins],
    }  # fmt: skip
    return head | loaded | state


def _loaded(running: Running) -> dict[str, Any]:
    facts, identity, placed, settings = running.model.facts, running.identity, running.placed, running.settings
    return {
        "repo": identity.repo, "revision": identity.revision, "model_sha256": identity.model_sha256,
        "manifest_sha256": identity.manifest_sha256, "surfaces": list(running.surfaces),
        "question_types": list(facts.question_types), "presets": list(facts.presets), "modalities": list(facts.modalities),
        "heads": [_head(head) for head in facts.heads],
        "embedding": asdict(facts.embedding) if facts.embedding else None,
        "rerank": asdict(facts.rerank) if facts.rerank else None,
        "limits": facts.limits, "licence": identity.licence, "parameters": facts.parameters, "dtype": facts.dtype,
        "quantization": running.quantization,
        "engine": placed.engine, "accelerator": placed.accelerator, "accelerator_validated": placed.accelerator_validated,
        "device": placed.device, "enable_shared_context": settings.enable_shared_context,
        "batch_window_ms": settings.batch_window_ms, "max_num_seqs": settings.max_num_seqs, "notes": _notes(running),
        "architecture": {"output_modalities": _outputs(running.model)}, **facts.extra,
    }  # fmt: skip


def _notes(running: Running) -> list[str]:
    """What a user should know: of the family, and for models that decide how good they are."""
    facts = running.model.facts
    if "decisions" not in running.model.planners:
        return list(facts.notes)
    return [*facts.notes, *quality_notes(running.identity.model_sha256, readout_of(running.family, facts))]


def _head(head: HeadFacts) -> dict[str, Any]:
    return asdict(head)


def _outputs(model: LoadedModel) -> list[str]:
    """What routers look for to find models that decide."""
    return list(model.planners)


def _decides(model: ServedModel) -> bool:
    return model.running is not None and "decisions" in model.running.model.planners


def _description(model: ServedModel) -> str:
    running = model.running
    if running is None:
        return f"{model.name}: {model.readiness.state}"
    surfaces = ", ".join(running.surfaces)
    notes = "; ".join(_notes(running))
    return f"{running.family} model for {surfaces}." + (f" {notes}" if notes else "")
