"""Plug-ins found through entry points: families, engines, accelerators. The built-in ones are found in the same way."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, TypeVar

from headway.errors import ConfigError
from headway.runtime.accelerators.accelerator import ACCELERATORS_GROUP, Accelerator
from headway.runtime.engines.engine import ENGINES_GROUP, Engine
from headway.runtime.family import FAMILIES_GROUP, ModelFamily
from headway.runtime.served_model import PluginFacts

_log = logging.getLogger(__name__)
T = TypeVar("T")
GROUPS: Final[Mapping[str, type[Any]]] = {
    FAMILIES_GROUP: ModelFamily,
    ENGINES_GROUP: Engine,
    ACCELERATORS_GROUP: Accelerator,
}


@dataclass(frozen=True)
class Plugin(Generic[T]):
    """`thing` is made once, at first use: until then only the name is known and nothing is imported."""

    group: str
    entry: EntryPoint
    kind: type[T]

    @property
    def name(self) -> str:
        return self.entry.name

    @cached_property
    def thing(self) -> T:
        """Raises ConfigError (`plugin_broken`) for what cannot be imported, has the wrong base or another name."""
        try:
            made = self.entry.load()
        except Exception as error:  # a plug-in is foreign code: whatever it raises, it is named and left out
            raise self._broken(f"cannot be imported: {type(error).__name__}: {error}") from error
        if not inspect.isclass(made) or not issubclass(made, self.kind):
            raise self._broken(f"is no {self.kind.__name__}")
        if getattr(made, "name", None) != self.name:
            raise self._broken(f"calls itself {getattr(made, 'name', None)!r}")
        if inspect.isabstract(made):
            raise self._broken(f"lacks {', '.join(sorted(getattr(made, '__abstractmethods__', ())))}")
        try:
            return made()
        except Exception as error:
            raise self._broken(f"cannot be made: {type(error).__name__}: {error}") from error

    @property
    def facts(self) -> PluginFacts:
        found = self.entry.dist
        name, version = ("", "") if found is None else (found.name, found.version)
        return PluginFacts(self.group, self.name, name, version)

    def _broken(self, how: str) -> ConfigError:
        return ConfigError(
            f"the plug-in {self.name!r} of {self.group} ({self.entry.value}) {how}", reason="plugin_broken", param=self.name
        )


class Plugins(Generic[T]):
    """The plug-ins of one group by name, in name order."""

    def __init__(self, group: str, kind: type[T], entries: Iterable[EntryPoint]):
        """Raises ConfigError (`plugin_conflict`) when one name stands for two different targets."""
        self.group = group
        found: dict[str, Plugin[T]] = {}
        for entry in entries:
            earlier = found.setdefault(entry.name, Plugin(group, entry, kind))
            if earlier.entry.value != entry.value:
                raise ConfigError(
                    f"two plug-ins of {group} are called {entry.name!r}: {earlier.entry.value} and {entry.value}",
                    reason="plugin_conflict",
                    param=entry.name,
                    fix="Uninstall one of the packages that bring them.",
                )
        self.by_name: Mapping[str, Plugin[T]] = {name: found[name] for name in sorted(found)}

    def named(self, name: str, what: str) -> Plugin[T]:
        """Raises ConfigError (`unknown_plugin`) that lists the names there are."""
        if name not in self.by_name:
            raise ConfigError(
                f"there is no {what} {name[:100]!r}; available: {', '.join(self.by_name) or 'none'}",
                reason="unknown_plugin",
                param=what,
            )
        return self.by_name[name]

    def usable(self) -> list[Plugin[T]]:
        """Those that can be made; the log names the others."""
        good = []
        for plugin in self.by_name.values():
            try:
                _ = plugin.thing
                good.append(plugin)
            except ConfigError as error:
                _log.error("%s", error.message)
        return good

    def broken(self) -> list[str]:
        """One sentence for each plug-in that cannot be made."""
        sentences = []
        for plugin in self.by_name.values():
            try:
                _ = plugin.thing
            except ConfigError as error:
                sentences.append(error.message)
        return sentences


def installed(group: str, kind: type[T]) -> Plugins[T]:
    """What the packages of this Python environment offer under the entry-point group."""
    return Plugins(group, kind, entry_points(group=group))


@dataclass(frozen=True, slots=True)
class PluginSet:
    families: Plugins[ModelFamily]
    engines: Plugins[Engine]
    accelerators: Plugins[Accelerator]

    @staticmethod
    def installed() -> PluginSet:
        """Raises ConfigError (`plugin_conflict`)."""
        return PluginSet(
            installed(FAMILIES_GROUP, ModelFamily),  # type: ignore[type-abstract]
            installed(ENGINES_GROUP, Engine),  # type: ignore[type-abstract]
            installed(ACCELERATORS_GROUP, Accelerator),  # type: ignore[type-abstract]
        )
