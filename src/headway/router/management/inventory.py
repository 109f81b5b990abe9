"""What the router runs and knows: models, signals, deployments."""

from __future__ import annotations

from typing import Any

from headway.router.deployments.pool import Pool
from headway.router.deployments.specification import default_decision_model, specifications
from headway.router.embedding.source import embedding_deployment
from headway.router.management.answer import Answer
from headway.router.management.call import Call
from headway.router.management.models import default_recipe
from headway.router.management.route import Route
from headway.router.signals.table import SIGNAL_KINDS
from headway.router.signals.usage import used_rules


async def model_runtime(call: Call) -> Answer:
    """Each deployment with its replicas, how they are, and what their model can do."""
    with call.state.generations.use() as generation:
        return Answer({"deployments": [_deployment(pool) for pool in generation.deployments.pools]})


async def models(call: Call) -> Answer:
    """Every model that a deployment serves, and every provider model that requests can be sent to."""
    with call.state.generations.use() as generation:
        served = [
            {
                "name": pool.name, "type": "model_runtime", "loaded": pool.ready, "state": pool.state.state,
                "model_path": pool.specification.artifact, "surfaces": _surfaces(pool),
            }
            for pool in generation.deployments.pools
        ]  # fmt: skip
        providers = generation.document.providers
        backends = [{"name": model.name, "type": "provider", "api_format": model.api_format or "openai"} for model in (providers and providers.models) or ()]
    loaded = sum(1 for each in served if each["loaded"])
    return Answer({"models": served, "provider_models": backends, "summary": {"ready": loaded == len(served), "loaded_models": loaded, "total_models": len(served)}})


async def classifier(call: Call) -> Answer:
    """Which signals the default recipe uses, and whether the models behind them answer."""
    with call.state.generations.use() as generation:
        recipe = default_recipe(generation)
        signals = {kind.observation_key: [getattr(rule, "name", "") for rule in rules] for kind, rules in used_rules(recipe, SIGNAL_KINDS)}
        ready = all(pool.ready for pool in generation.deployments.pools)
        decisions = [decision.name for decision in recipe.routing.decisions or ()]
    return Answer({"status": "active" if ready else "degraded", "signals": signals, "decisions": decisions, "config_hash": generation.config_hash})


async def embedding_models(call: Call) -> Answer:
    with call.state.generations.use() as generation:
        name = embedding_deployment(default_recipe(generation))
        found = [
            {
                "model_name": pool.name, "is_loaded": pool.ready, "model_path": pool.specification.artifact, "is_default": pool.name == name,
                "dimensions": list(pool.card.dimensions), "representation": pool.card.representation,
            }
            for pool in generation.deployments.pools
            if pool.card is not None and "embeddings" in pool.card.surfaces
        ]  # fmt: skip
    return Answer({"models": found, "default": name})


async def systemone_cards(call: Call) -> Answer:
    """Deployments that answer questions."""
    with call.state.generations.use() as generation:
        return Answer({"deployments": [_card(pool) for pool in generation.deployments.pools]})


async def instance(call: Call) -> Answer:
    with call.state.generations.use() as generation:
        router = generation.document.global_.router if generation.document.global_ else None
        mode = "engine" if router is not None and router.enabled is False else "router"
        name = default_decision_model(generation.document)
        known = specifications(generation.document).get(name)
        active = name if any(pool.name == name for pool in generation.deployments.pools) else None
    return Answer({"observed_mode": mode, "active_deployment": active, "model": known.artifact if known and active else None})


async def list_models(call: Call) -> Answer:
    with call.state.generations.use() as generation:
        return Answer({"object": "list", "data": list(generation.names.listed())})


def _deployment(pool: Pool) -> dict[str, Any]:
    specification, state = pool.specification, pool.state
    replicas = [_replica(pool, at) for at in range(len(pool.workers))]
    return {
        "name": pool.name,
        "managed": specification.managed,
        "endpoint": next((replica.endpoint for replica in specification.replicas if replica.endpoint), None),
        "process": [worker.pid for worker in pool.workers if worker.pid is not None],
        "artifact": specification.artifact,
        "model": pool.card.id if pool.card else None,
        "ready": pool.ready,
        "state": state.state,
        "reason": state.reason,
        "restarts": sum(replica["restarts"] for replica in replicas),
        "desired_replicas": len(replicas),
        "ready_replicas": sum(replica["ready"] for replica in replicas),
        "replicas": replicas,
        "card": dict(pool.card.raw) if pool.card else None,
    }


def _replica(pool: Pool, at: int) -> dict[str, Any]:
    worker = pool.workers[at]
    state = pool.state_of(worker)
    return {
        "id": worker.id,
        "managed": worker.managed,
        "device": worker.device,
        "ready": state.ready,
        "state": state.state,
        "reason": state.reason,
        "inflight": worker.in_flight,
        "estimated_work": worker.admitted_bytes,
        "restarts": worker.restarts,
    }


def _surfaces(pool: Pool) -> list[str]:
    return sorted(pool.card.surfaces) if pool.card else []


def _card(pool: Pool) -> dict[str, Any]:
    questions = sorted(pool.card.question_types) if pool.card else []
    return {"id": pool.name, "ready": pool.ready, "artifact": pool.specification.artifact, "surfaces": _surfaces(pool), "question_types": questions}


_ROOT = "/api/v1/inventory"
ROUTES = (
    Route("GET", f"{_ROOT}/models", models, "config.read", "Models, served here and elsewhere.", ("/info/models",)),
    Route("GET", f"{_ROOT}/classifier", classifier, "config.read", "Signals that are in use.", ("/info/classifier",)),
    Route("GET", f"{_ROOT}/embedding-models", embedding_models, "config.read", "Models that make vectors.", ("/api/v1/embeddings/models",)),
    Route("GET", f"{_ROOT}/model-runtime", model_runtime, "config.read", "Deployments, their replicas and models."),
    Route("GET", "/api/v1/diagnostics/models/systemone", systemone_cards, "config.read", "Deployments that answer questions."),
    Route("GET", "/api/v1/instance", instance, "config.read", "Router or Engine mode, and the decision model."),
    Route("GET", "/v1/models", list_models, None, "The names that requests may ask for."),
)
