"""Rules about listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.listeners import Listener
from headway.router.config.rules.profiles import did_you_mean, provider_models
from headway.router.deployments.specification import declared


def listener_addresses(document: Document) -> Iterator[Diagnostic]:
    """Two listeners cannot have the same port of one address. Port 0 is any free port."""
    taken: dict[tuple[str, int], str] = {}
    for index, listener in enumerate(document.listeners or ()):
        address = (listener.address, listener.port)
        if listener.port and address in taken:
            message = f'{listener.address}:{listener.port} is the address of listener "{taken[address]}" already'
            yield Diagnostic("address_repeated", message, ("listeners", index, "port"))
        taken.setdefault(address, listener.name)


def listener_trust(document: Document) -> Iterator[Diagnostic]:
    for index, listener in enumerate(document.listeners or ()):
        identity = listener.identity
        if identity and identity.trust_headers and not identity.trusted_peers:
            message = f'listener "{listener.name}" trusts identity headers, but from no peer: they are dropped'
            fix = "Name the networks of your authenticating proxy in trusted_peers"
            yield Diagnostic("no_trusted_peers", message, ("listeners", index, "identity"), fix, severity="warning")


def native_grants(document: Document) -> Iterator[Diagnostic]:
    """A name under `systemone.models` is that of exactly one deployment of a model runtime, or of a native provider model or entrypoint."""
    native = {name for name, model in provider_models(document).items() if model.api_format == "systemone"}
    native |= {name for entry in document.entrypoints or () if entry.api == "systemone" for name in entry.model_names}
    public = public_names(document)
    for index, listener in enumerate(document.listeners or ()):
        yield from _grants(listener, ("listeners", index, "systemone", "models"), native, public)


def _grants(listener: Listener, path: Path, native: set[str], public: Mapping[str, list[str]]) -> Iterator[Diagnostic]:
    for at, name in enumerate(listener.systemone.models if listener.systemone else ()):
        if name in native:
            continue
        owners = public.get(name, [])
        if not owners:
            message = f'listener "{listener.name}" grants "{name}", which is the public name of no deployment'
            yield Diagnostic("model_undeclared", message, (*path, at), did_you_mean(name, {*public, *native}))
        elif len(owners) > 1:
            message = f'"{name}" is the public name of the deployments {", ".join(sorted(owners))}'
            yield Diagnostic("name_ambiguous", message, (*path, at), "Give each its own public_name")


def public_names(document: Document) -> dict[str, list[str]]:
    """Public System One name -> deployments of model runtimes."""
    found: dict[str, list[str]] = {}
    for key, deployment in declared(document).items():
        artifact = deployment.artifact or ""
        name = deployment.public_name or ("" if artifact.startswith("/") else artifact)
        if name:
            found.setdefault(name, []).append(key)
    return found
