"""Looking up flags by any spelling."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.engine.flags_old import OLD_SPELLINGS
from headway.errors import ConfigError
from headway.flags.flag import Flag


@dataclass(frozen=True, slots=True)
class Match:
    """`value` is what the spelling itself says: False for `--no-x`, the value of an old switch, else None.

    `path` are the parts after the name in `--name.a.b`; `renamed` is the warning for an old spelling.
    """

    flag: Flag
    value: str | bool | None = None
    path: tuple[str, ...] = ()
    renamed: str | None = None


class FlagIndex:
    """All spellings of some flags. Names are compared with dashes for underscores."""

    def __init__(self, flags: Sequence[Flag], command: str = "headway serve"):
        """`command` is named in the advice for an unknown flag."""
        self.flags = flags
        self._command = command
        self._long: dict[str, Flag] = {}
        self._short: dict[str, Flag] = {}
        for flag in flags:
            self._long[flag.name] = flag
            for alias in flag.aliases:
                if alias.startswith("-"):
                    self._short[alias] = flag
                else:
                    self._long[alias] = flag

    @property
    def short(self) -> Mapping[str, Flag]:
        """`-tp` and the like."""
        return self._short

    def find(self, spelling: str) -> Match:
        """The flag behind `spelling`, which has no leading dashes. Raises ConfigError with the nearest known name."""
        name, *path = spelling.split(".")
        name = name.replace("_", "-")
        flag = self._long.get(name)
        if flag is not None:
            if path and flag.kind != "json":
                raise ConfigError(f"--{spelling}: --{flag.name} takes one value and has no parts", param=flag.name)
            return Match(flag, path=tuple(path))
        if name in OLD_SPELLINGS and not path:
            return self._renamed(name)
        negated = self._long.get(name.removeprefix("no-")) if name.startswith("no-") else None
        if negated is not None and negated.kind == "bool":
            return Match(negated, value=False)
        raise ConfigError(
            f"Unknown flag --{spelling[:100]}", reason="unknown_flag", param=name[:100], fix=self._suggestion(name)
        )

    def _renamed(self, name: str) -> Match:
        new, value = OLD_SPELLINGS[name]
        shown = f"--{new}" + ("" if value is None else f" {value}")
        found = self.find(new)
        return Match(found.flag, value, found.path, renamed=f"--{name} was renamed to {shown}")

    def _suggestion(self, name: str) -> str:
        near = difflib.get_close_matches(name, [*self._long, *OLD_SPELLINGS], 1)
        return f"Did you mean --{near[0]}?" if near else f"{self._command} --help=all lists all flags."
