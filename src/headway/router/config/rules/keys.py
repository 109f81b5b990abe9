"""Rules about the keys of listeners and what they open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.listeners import Listener
from headway.router.config.rules.profiles import did_you_mean
from headway.router.generation.names import compile_names


def listener_keys(document: Document) -> Iterator[Diagnostic]:
    """Names and keys stand once in a listener, budgets are in a currency in which something has a price."""
    models = (document.providers.models if document.providers else None) or ()
    priced = {model.pricing.currency or "USD" for model in models if model.pricing is not None}
    for index, listener in enumerate(document.listeners or ()):
        path: Path = ("listeners", index, "keys")
        yield from _repeated(listener, path)
        for at, key in enumerate(listener.keys or ()):
            if key.budget is not None and key.budget.currency not in priced:
                message = f'the budget of key "{key.name}" is in {key.budget.currency}, in which no model has a price: it would never be spent'
                yield Diagnostic("budget_unreachable", message, (*path, at, "budget"), "Give providers.models[].pricing, or the currency of the prices")


def opened_models(document: Document) -> Iterator[Diagnostic]:
    """Names that listeners and keys open are names of the public address; others open nothing."""
    known = set(compile_names(document, created=0).meanings)
    for index, listener in enumerate(document.listeners or ()):
        granted = set(listener.systemone.models) if listener.systemone else set()
        yield from _unknown(listener.models or (), known, ("listeners", index, "models"))
        for at, key in enumerate(listener.keys or ()):
            yield from _unknown(key.models or (), known | granted, ("listeners", index, "keys", at, "models"))


def _repeated(listener: Listener, path: Path) -> Iterator[Diagnostic]:
    names: set[str] = set()
    secrets = set(listener.api_keys or ())
    for at, key in enumerate(listener.keys or ()):
        if key.name in names:
            yield Diagnostic("key_repeated", f'listener "{listener.name}" has two keys named "{key.name}"', (*path, at, "name"))
        if key.key is not None and key.key in secrets:
            yield Diagnostic("key_repeated", f'the key of "{key.name}" opens listener "{listener.name}" under another name, too', (*path, at, "key"))
        names.add(key.name)
        secrets |= {key.key} if key.key is not None else set()


def _unknown(models: Sequence[str], known: set[str], path: Path) -> Iterator[Diagnostic]:
    for at, model in enumerate(models):
        if model not in known:
            yield Diagnostic("model_undeclared", f'"{model}" is no name that requests can use, so it opens nothing', (*path, at), did_you_mean(model, known), severity="warning")
