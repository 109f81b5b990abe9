"""PrefixRouting: what the backends of one model hold of a request's prompt."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from headway.router.config.document.prefix_routing import PrefixRoutingSettings
from headway.router.config.document.providers import ProviderModel
from headway.router.config.duration import seconds
from headway.router.metrics.registry import RouterMetrics
from headway.router.prefixes.follower import EventSource, Follower
from headway.router.prefixes.followers import FollowerKey, Followers
from headway.router.prefixes.preference import Preference
from headway.router.prefixes.prompt_tokens import PromptTokens
from headway.router.prefixes.token_chain import MOST_TOKENS
from headway.router.request.context import RequestContext
from headway.router.upstream.backend import Backend
from headway.router.upstream.connections import Connections
from headway.router.upstream.health import BackendStates


class PrefixRouting:
    def __init__(
        self, name: str, settings: PrefixRoutingSettings, sources: Mapping[str, tuple[Backend, EventSource]], states: BackendStates,
        connections: Connections, metrics: RouterMetrics,
    ):  # fmt: skip
        """`sources`: the backends that publish, by alias. Nothing is known before `follow`."""
        self._name = name
        self._settings = settings
        self._backends = [backend for backend, _ in sources.values()]
        self._states = states
        self._tokens = PromptTokens(connections, seconds(settings.tokenize_timeout))
        self._metrics = metrics
        stale = seconds(settings.stale_after)
        self._keys: Mapping[str, FollowerKey] = {
            alias: (backend.identity, source, settings.max_blocks, stale) for alias, (backend, source) in sources.items()
        }
        self._followers: Mapping[str, Follower] = {}

    def follow(self, followers: Followers) -> Iterable[FollowerKey]:
        """Take the followers of its backends; their keys."""
        self._followers = {alias: followers.of(key, (self._name, alias)) for alias, key in self._keys.items()}
        return self._keys.values()

    async def preference(self, context: RequestContext) -> Preference | None:
        """None where no backend is known to hold enough of the prompt, or it cannot be known: then backends are chosen as without events."""
        found = await self._found(context)
        if isinstance(found, Preference):
            return found
        self._metrics.count("headway_prefix_placements", self._name, found)
        return None

    async def _found(self, context: RequestContext) -> Preference | str:
        """Or why there is none, in the words of the metric."""
        began = time.monotonic()
        if not any(len(each.index) for each in self._followers.values()):
            return "empty"
        if context.body.get("cache_salt") is not None or (context.selection is not None and context.selection.lora is not None):
            return "special"
        chain = await self._tokens.chain(context, self._least_busy())
        if chain is None:
            return "no_tokens"
        least = max(1.0, self._settings.least_share * min(chain.length, MOST_TOKENS))
        found = {alias: follower.held(chain) for alias, follower in self._followers.items()}
        self._metrics.observe("headway_prefix_lookup_seconds", time.monotonic() - began, self._name)
        held = {alias: tokens for alias, tokens in found.items() if tokens >= least}
        return Preference(held, self._settings.most_ahead) if held else "not_held"

    def _least_busy(self) -> Backend:
        now = time.monotonic()

        def rank(backend: Backend) -> tuple[bool, int]:
            state = self._states.of(backend.identity)
            return not state.healthy or state.ejected(now), state.in_flight

        return min(self._backends, key=rank)


def prefix_routing(
    model: ProviderModel, backends: Sequence[Backend], states: BackendStates, connections: Connections, metrics: RouterMetrics
) -> PrefixRouting | None:
    """None for a model that does not ask for it. The backends are those of `model.backend_refs`, in their order."""
    if model.prefix_routing is None:
        return None
    sources: dict[str, tuple[Backend, EventSource]] = {}
    for ref, backend in zip(model.backend_refs or (), backends, strict=True):
        events = ref.kv_events
        if events is not None and backend.weight > 0 and backend.counting is not None:
            sources[backend.alias] = backend, EventSource(events.endpoint, events.replay_endpoint, events.topic)
    return PrefixRouting(model.name, model.prefix_routing, sources, states, connections, metrics) if sources else None
