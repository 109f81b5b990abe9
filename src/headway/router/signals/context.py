"""The context signal: how many tokens a request has, roughly."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.text_signals import ContextRule, token_count
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "context"
_BYTES_PER_TOKEN = 4


class ContextBands:
    """All rules; the tokens are counted once."""

    def __init__(self, rules: Sequence[ContextRule]) -> None:
        self._bands = [(rule.name, token_count(rule.min_tokens or "0"), token_count(rule.max_tokens) if rule.max_tokens else None) for rule in rules]

    def observe(self, view: RequestView) -> Sequence[Observation]:
        tokens = estimated_tokens(view)
        return [
            Observation(TYPE, name, Truth.of(least <= tokens and (most is None or tokens <= most)), value=float(tokens)) for name, least, most in self._bands
        ]


def estimated_tokens(view: RequestView) -> int:
    """A quarter of the UTF-8 bytes of all texts of the request, instructions included, rounded up."""
    size = sum(map(_utf8_bytes, (view.system_text, *view.all_texts)))
    return -(-size // _BYTES_PER_TOKEN)


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _compile(rules: Sequence[ContextRule], recipe: Recipe) -> Sequence[ContextBands]:
    return (ContextBands(rules),)


CONTEXT = SignalKind(TYPE, "context", "context", _compile)
