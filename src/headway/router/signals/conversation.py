"""The conversation signal: what a request consists of - turns, tools, images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.router.config.document.text_signals import ConversationRule, ConversationSource
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "conversation"


class ConversationShape:
    """All rules."""

    def __init__(self, rules: Sequence[ConversationRule]) -> None:
        self._rules = rules

    def observe(self, view: RequestView) -> Sequence[Observation]:
        return [_observed(rule, view) for rule in self._rules]


def _observed(rule: ConversationRule, view: RequestView) -> Observation:
    source = rule.feature.source
    count = _COUNTERS[source.type](view, source)
    value = float(count > 0) if rule.feature.type == "exists" else float(count)
    holds = rule.predicate.holds(value) if rule.predicate is not None else value > 0
    return Observation(TYPE, rule.name, Truth.of(holds), value=value)


def _messages(view: RequestView, source: ConversationSource) -> int:
    roles = [message.get("role") for message in view.messages]
    if source.role is None:
        return len(roles)
    if source.role == "non_user":
        return sum(role != "user" for role in roles)
    return roles.count(source.role)


def _tool_calls(message: Mapping[str, Any]) -> int:
    calls = message.get("tool_calls")
    return len(calls) if message.get("role") == "assistant" and isinstance(calls, list) else 0


def _image_parts(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    return sum(isinstance(part, Mapping) and part.get("type") == "image_url" for part in content) if isinstance(content, list) else 0


def in_tool_loop(view: RequestView) -> bool:
    """Whether the request goes on with tools: its last message is a tool's result, its latest user turn comes directly after one, or calls are open."""
    messages = view.messages
    if not messages:
        return False
    roles = [message.get("role") for message in messages]
    if roles[-1] == "tool":
        return True
    users = [at for at, role in enumerate(roles) if role == "user"]
    if users and users[-1] > 0 and roles[users[-1] - 1] == "tool":
        return True
    return sum(map(_tool_calls, messages)) > roles.count("tool")


_COUNTERS: Mapping[str, Callable[[RequestView, ConversationSource], int]] = {
    "message": _messages,
    "tool_definition": lambda view, source: len(view.tools),
    "assistant_tool_call": lambda view, source: sum(map(_tool_calls, view.messages)),
    "assistant_tool_cycle": lambda view, source: sum(message.get("role") == "tool" for message in view.messages),
    "active_tool_loop": lambda view, source: int(in_tool_loop(view)),
    "image_content": lambda view, source: sum(map(_image_parts, view.messages)),
}


def _compile(rules: Sequence[ConversationRule], recipe: Recipe) -> Sequence[ConversationShape]:
    return (ConversationShape(rules),)


CONVERSATION = SignalKind(TYPE, "conversation", "conversation", _compile)
