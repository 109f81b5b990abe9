"""The authz signal: roles of the authenticated user."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.text_signals import RoleBinding
from headway.router.observation import Observation
from headway.router.request.identity import Identity
from headway.router.request.view import RequestView
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "authz"


class RoleBindings:
    """All bindings. A role holds when one of the bindings that give it does; conditions may name a role or a binding."""

    def __init__(self, rules: Sequence[RoleBinding]) -> None:
        self._names: dict[str, list[tuple[str, str]]] = {}
        for rule in rules:
            for name in _names(rule):
                self._names.setdefault(name, []).extend((subject.kind, subject.name) for subject in rule.subjects)

    def observe(self, view: RequestView) -> Sequence[Observation]:
        identity = view.identity
        return [Observation(TYPE, name, Truth.of(any(_is(identity, *subject) for subject in subjects))) for name, subjects in self._names.items()]


def _is(identity: Identity, kind: str, name: str) -> bool:
    return identity.user == name if kind == "User" else name in identity.groups


def _names(rule: RoleBinding) -> tuple[str, ...]:
    return tuple(dict.fromkeys((rule.name, rule.role)))


def _compile(rules: Sequence[RoleBinding], recipe: Recipe) -> Sequence[RoleBindings]:
    return (RoleBindings(rules),)


AUTHZ = SignalKind(TYPE, "role_bindings", "authz", _compile, _names)
