"""Upstreams: the backends of all provider models of one generation, and the fallback from one model to another."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.router.config.document.algorithms import ConfidenceAlgorithm
from headway.router.config.document.decisions import Decision
from headway.router.config.document.document import Document
from headway.router.config.document.stores import Looper
from headway.router.generation.services import Services
from headway.router.prefixes.prefix_routing import PrefixRouting, prefix_routing
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.selection.candidates import Candidate, candidates_of
from headway.router.selection.result import Selection
from headway.router.upstream.asking import Asking
from headway.router.upstream.cascading import cascade
from headway.router.upstream.composing import other_route, question_for
from headway.router.upstream.errors import BackendBusyError, NoBackendError, UpstreamError, UpstreamTimeoutError
from headway.router.upstream.fallback import Fallback, fallback_of
from headway.router.upstream.formats.table import FORMATS
from headway.router.upstream.health_checks import HealthCheck, HealthChecks
from headway.router.upstream.reliability import Reliability, reliability_of
from headway.router.upstream.replying import Replying
from headway.router.upstream.targets import compile_targets
from headway.router.upstream.token_counting import counted_tokens

ATTEMPTS_HEADER = "x-vsr-fallback-attempts"


def compile_upstreams(
    document: Document, services: Services, environment: Mapping[str, str] = os.environ
) -> ConnectedUpstreams:
    """Raises ConfigError."""
    targets = compile_targets(document, environment)
    models = {
        name: Asking(target, services.connections, services.backends, services.activity, services.metrics) for name, target in targets.items()
    }
    return ConnectedUpstreams(document, models, services, _prefixes(document, models, services))


def _prefixes(document: Document, models: Mapping[str, Asking], services: Services) -> dict[str, PrefixRouting]:
    """Of the models that ask for it."""
    providers = (document.providers and document.providers.models) or ()
    found = {
        model.name: prefix_routing(model, models[model.name].target.backends, services.backends, services.connections, services.metrics)
        for model in providers
        if model.name in models
    }
    return {name: each for name, each in found.items() if each is not None}


@dataclass(frozen=True, slots=True)
class _Policy:
    """What a decision says about its models, by the candidates' names."""

    decision: Decision
    fallback: Fallback
    candidates: Mapping[str, Candidate]

    def selected(self, selection: Selection, name: str) -> Selection:
        """`selection`, or that of another candidate with the words of its own modelRef."""
        if name == (selection.lora or selection.model):
            return selection
        candidate = self.candidates.get(name)
        if candidate is None:
            return replace(selection, model=name, lora=None, use_reasoning=None, reasoning_mode=None, reasoning_effort=None)
        ref = candidate.ref
        return replace(
            selection,
            model=candidate.model,
            lora=candidate.lora,
            use_reasoning=ref.use_reasoning,
            reasoning_mode=ref.reasoning_mode,
            reasoning_effort=ref.reasoning_effort,
        )


class ConnectedUpstreams:
    def __init__(self, document: Document, models: Mapping[str, Asking], services: Services, prefixes: Mapping[str, PrefixRouting] | None = None):
        self.models = models
        self._prefixes = prefixes or {}
        self._document = document
        self._services = services
        defaults = document.providers.defaults if document.providers else None
        self._default_effort = defaults.reasoning_effort if defaults else None
        integrations = document.global_.integrations if document.global_ else None
        self._cascade_seconds = ((integrations.looper if integrations else None) or Looper()).timeout_seconds
        self._policies: dict[tuple[str, str], _Policy] = {}
        self._checks = HealthChecks(_checks(models, services))

    def start(self) -> None:
        self._services.backends.keep_only(backend.identity for model in self.models.values() for backend in (*model.target.backends, *model.target.prefills))
        followers = self._services.followers
        followers.keep_only([key for prefixes in self._prefixes.values() for key in prefixes.follow(followers)])
        for model in self.models.values():
            if model.target.reliability.health_path is None:  # the word of checks that are no more
                for state in model.pool.states:
                    state.healthy = True
        self._checks.start()

    async def send(self, context: RequestContext) -> Reply:
        """The answer of the selected model, or of another candidate where the fallback policy allows it; `context.selection` names whose it is."""
        selection = context.selection
        assert selection is not None
        policy = self._policy(context)
        if policy is None:
            return await self.ask(context, selection)
        if selection.status == "execution_required":
            return await self._cascade(context, selection, policy)
        if policy.fallback.enabled:
            return await self._with_fallback(context, selection, policy)
        return await self.ask(context, selection, policy.decision)

    async def ask(
        self,
        context: RequestContext,
        selection: Selection,
        decision: Decision | None = None,
        changes: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> Reply:
        """The selected model's answer, whatever its status; no other model is asked. `seconds` bounds all its tries. Raises UpstreamError."""
        asking = self.models.get(selection.model or "")
        if asking is None:
            raise NoBackendError(f'model "{selection.model}" has no provider', fix="Declare it in providers.models.")
        question = question_for(context, asking.target, selection, self._default_effort, changes or {})
        began = time.monotonic()
        if (prefixes := self._prefixes.get(asking.target.name)) is not None:
            question = replace(question, preference=await prefixes.preference(context))
        exchange = await asking.ask(question, self._reliability(asking, decision, seconds))
        path = other_route(context)
        style = FORMATS[exchange.backend.format if path is None else "openai"]
        streams = {**context.body, **(changes or {})}.get("stream") is True
        replying = Replying(asking.target.name, self._services, began, context.attempts.append, path, streams, _wants_usage(context))
        return await replying.reply(exchange, style)

    async def count_tokens(self, context: RequestContext) -> int | None:
        """The prompt tokens of `context.body` as the selected model counts them; None where no backend of it can."""
        asking = self.models.get((context.selection.model if context.selection else None) or "")
        return None if asking is None else await counted_tokens(asking, context)

    async def close(self) -> None:
        """Ends the health checks. Connections belong to the services, and stay."""
        await self._checks.close()

    async def _with_fallback(self, context: RequestContext, selection: Selection, policy: _Policy) -> Reply:
        fallback = policy.fallback
        end = time.monotonic() + fallback.total if fallback.total else float("inf")
        asked = 0
        last: Reply | UpstreamError | None = None
        for name in selection.order[: fallback.attempts]:
            left = min(end - time.monotonic(), context.deadline.left if context.deadline.visible else float("inf"))
            if asked and left <= 0:
                break
            mine = policy.selected(selection, name)
            circuit = self._services.circuits.of(mine.model or "")
            if fallback.breaker is not None and not circuit.begin(fallback.breaker):
                context.attempts.append(f"{mine.model}: circuit_open")
                continue
            asked += 1
            if isinstance(last, Reply):
                await last.close()
            ok: bool | None = None
            try:
                seconds = min(left, fallback.per_attempt or left)
                last = await self.ask(context, mine, policy.decision, seconds=None if seconds == float("inf") else seconds)
                ok = last.status not in fallback.statuses
            except UpstreamError as error:
                last, ok = error, None if isinstance(error, BackendBusyError) else False
            finally:
                if fallback.breaker is not None:
                    circuit.end(fallback.breaker, ok)
            if ok and isinstance(last, Reply):
                if mine is not selection:
                    context.selection = replace(mine, status="fallback", reason=f"{selection.lora or selection.model} did not answer")
                break
        if asked > 1:
            context.response_headers[ATTEMPTS_HEADER] = str(asked)
        if last is None:
            raise NoBackendError("the circuit of every candidate is open after failures", fix="Try again later.")
        if isinstance(last, UpstreamError):
            raise last
        return last

    async def _cascade(self, context: RequestContext, selection: Selection, policy: _Policy) -> Reply:
        algorithm = policy.decision.algorithm
        settings = (algorithm.confidence if algorithm else None) or ConfidenceAlgorithm()
        strict = (settings.on_error or (algorithm.on_error if algorithm else "skip")) == "fail"
        order = [policy.selected(selection, name) for name in selection.order]
        end = time.monotonic() + self._cascade_seconds

        async def ask(selected: Selection, changes: Mapping[str, Any]) -> Reply:
            left = end - time.monotonic()
            if left <= 0:
                raise UpstreamTimeoutError(f"the models of a cascade have {self._cascade_seconds} s, and they are over")
            return await self.ask(context, selected, policy.decision, changes, left)

        return await cascade(context, settings, strict, order, ask, self._services.metrics)

    def _policy(self, context: RequestContext) -> _Policy | None:
        """None for a request that no decision routed."""
        recipe, name = context.recipe, context.decision_name
        if recipe is None or name is None:
            return None
        found = self._policies.get((recipe.name, name))
        if found is None:
            routing = recipe.recipe.routing
            decision = next(each for each in routing.decisions or () if each.name == name)
            candidates = {each.name: each for each in candidates_of(decision, recipe.recipe)}
            found = self._policies[recipe.name, name] = _Policy(decision, fallback_of(self._document, routing, decision.fallback), candidates)
        return found

    def _reliability(self, asking: Asking, decision: Decision | None, seconds: float | None) -> Reliability:
        base = asking.target.reliability
        if decision is not None and decision.reliability is not None:
            base = reliability_of(decision.reliability, base)
        if seconds is not None:
            base = replace(base, total=min(seconds, base.total or seconds))
        return base


def _wants_usage(context: RequestContext) -> bool:
    options = context.body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


def _checks(models: Mapping[str, Asking], services: Services) -> Iterator[HealthCheck]:
    for model in models.values():
        if model.target.reliability.health_path is not None:
            for backend in model.target.backends:
                state = services.backends.of(backend.identity)
                yield HealthCheck(backend, state, model.target.reliability, services.connections, services.metrics)
