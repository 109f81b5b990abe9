"""Variables that a configuration names without ${...}: warned about where they are not set, because a router does not start without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.router.config.diagnostics import Diagnostic, Path

_KEYS = frozenset({"key_env", "api_key_env"})
_TOKENS = ("global", "services", "management_api", "auth", "tokens")


def unset_variables(data: Mapping[str, Any], environment: Mapping[str, str]) -> list[Diagnostic]:
    """One warning for each place that names a variable which is not set, or empty."""
    fix = "Set it where the router runs: it does not start without it."
    return [
        Diagnostic("environment_unset", f"the environment variable {name} is not set", path, fix, severity="warning")
        for path, name in _named(data, ())
        if not environment.get(name)
    ]


def _named(node: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if isinstance(value, str) and (key in _KEYS or (key == "env" and path[:-1] == _TOKENS)):
                yield (*path, key), value
            else:
                yield from _named(value, (*path, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _named(value, (*path, number))
