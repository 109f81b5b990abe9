"""SessionKeeper: lets a session keep its model when an algorithm proposes another one that is not much better."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from headway.router.config.document.decisions import Decision
from headway.router.config.document.learning import Protection, ProtectionRedis
from headway.router.generation.services import Services
from headway.router.request.context import RequestContext
from headway.router.selection.affinity.memory import Memory, Turn
from headway.router.selection.ranking import Ranking
from headway.router.signals.kind import Recipe


@dataclass(frozen=True, slots=True)
class SessionKeeper:
    settings: Protection
    recipe: str
    decision: str
    memory: Memory

    async def kept(self, ranking: Ranking, context: RequestContext) -> Ranking:
        """The ranking with the session's model first. As it was for requests that name no session, and where the choice is not made yet (cascades)."""
        named = context.headers.get(self.settings.header)
        if not named or ranking.failed or not ranking.order or ranking.status != "selected":
            return ranking
        order = list(dict.fromkeys(candidate.name for candidate in ranking.order))
        close = [name for name in order if not self._is_better(ranking, order[0], name)]
        tuning = self.settings.tuning
        model = await self.memory.model(Turn(
            session=self._session(named, context), decision=self.decision, proposed=order[0], close=close, others=[name for name in order if name not in close],
            least=tuning.min_turns_before_switch, idle=tuning.idle_timeout_seconds, dry=context.dry_run,
        ))  # fmt: skip
        if not context.dry_run:
            context.generation.services.metrics.count("headway_session_protection", "proposed" if model == order[0] else "kept")
        if model == order[0]:
            return ranking
        return replace(ranking, order=sorted(ranking.order, key=lambda candidate: candidate.name != model), reason="the session keeps its model")

    def _is_better(self, ranking: Ranking, first: str, name: str) -> bool:
        """Whether the first is so much better that a session leaves the other for it. Without scores nothing is."""
        if first not in ranking.scores or name not in ranking.scores:
            return False
        tuning = self.settings.tuning
        return ranking.scores[first] - ranking.scores[name] > tuning.switch_margin * tuning.stability_weight

    def _session(self, named: str, context: RequestContext) -> str:
        """Of one caller: what others call their sessions does not matter."""
        who = context.identity
        parts = (self.recipe, self.settings.scope, who.tenant or "", who.user or who.key or "", named)
        return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def compile_keeper(decision: Decision, recipe: Recipe, services: Services) -> SessionKeeper | None:
    """None where nothing is protected."""
    router = recipe.document.global_.router if recipe.document.global_ else None
    learning = router.learning if router else None
    settings = learning.protection if learning is not None and learning.enabled else None
    if settings is None or not settings.enabled or (decision.adaptations is not None and decision.adaptations.mode == "bypass"):
        return None
    shared = settings.store_backend == "redis"
    memory = services.shared.models(settings.redis or ProtectionRedis()) if shared else services.session_models
    return SessionKeeper(settings, recipe.name, decision.name or "", memory)
