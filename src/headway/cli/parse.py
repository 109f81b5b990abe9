"""Command line words -> flag values. Knows how words belong together; what flags exist is data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway.cli.flag_index import FlagIndex, Match
from headway.errors import ConfigError
from headway.flags.flag import Flag
from headway.flags.values import json_or_text

Warn = Callable[[str], None]


@dataclass(slots=True)
class Parsed:
    """`values` by flag name, only of flags that were given. `warn` takes sentences as they come up, each once."""

    warn: Warn
    values: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    topic: str | None = None  # what --help was asked about; "" for the overview


def parse_words(words: Sequence[str], index: FlagIndex, warn: Warn) -> Parsed:
    """Raises ConfigError (unknown flag, missing or wrong value) and NotBuiltError."""
    out = Parsed(_once(warn))
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            out.words += queue
            break
        if word in ("-h", "--help") or word.startswith("--help="):
            out.topic = word.partition("=")[2]
        elif word.startswith("--"):
            spelling, equals, value = word[2:].partition("=")
            _take(index.find(spelling), value if equals else None, queue, out)
        elif word.startswith("-") and word.partition("=")[0] in index.short:
            short, equals, value = word.partition("=")
            _take(Match(index.short[short]), value if equals else None, queue, out)
        elif word.startswith("-") and len(word) > 1:
            raise ConfigError(f"Unknown flag {word[:100]}", reason="unknown_flag", param=word[:100])
        else:
            out.words.append(word)
    for name, value in out.values.items():
        _check(index.find(name).flag, value, out)
    return out


def values_from_file(values: Mapping[str, Any], index: FlagIndex, warn: Warn) -> dict[str, Any]:
    """The same for the keys of a config file: long flags without dashes. Values have types of their own."""
    out = Parsed(_once(warn))
    for spelling, value in values.items():
        match = index.find(str(spelling))
        _note(match, out)
        out.values[match.flag.name] = _native(match.flag, value)
    for name, value in out.values.items():
        _check(index.find(name).flag, value, out)
    return out.values


def _take(match: Match, text: str | None, queue: list[str], out: Parsed) -> None:
    """Consume the value of one flag from `text` (after `=`) or from the words that follow."""
    flag = match.flag
    _note(match, out)
    if match.value is not None:
        if text is not None:
            raise ConfigError(f"--{flag.name} written this way takes no value, got {text[:100]!r}", param=flag.name)
        out.values[flag.name] = match.value if flag.kind == "bool" else flag.read(str(match.value))
    elif match.path:
        _put(out.values.setdefault(flag.name, {}), match.path, json_or_text(_one(flag, text, queue)), flag)
    elif flag.kind == "bool":
        out.values[flag.name] = True if text is None else flag.read(text)
    elif flag.kind in ("texts", "words"):
        given = list(_several(queue)) if flag.kind == "words" and text is None else [_one(flag, text, queue)]
        if not given:
            raise ConfigError(f"--{flag.name} needs at least one value", param=flag.name)
        out.values[flag.name] = (*out.values.get(flag.name, ()), *(item for g in given for item in flag.read(g)))
    else:
        out.values[flag.name] = flag.read(_one(flag, text, queue))


def _one(flag: Flag, text: str | None, queue: list[str]) -> str:
    if text is not None:
        return text
    if not queue or queue[0].startswith("--"):
        raise ConfigError(f"--{flag.name} needs a value", param=flag.name)
    return queue.pop(0)


def _several(queue: list[str]) -> Iterator[str]:
    while queue and not queue[0].startswith("-"):
        yield queue.pop(0)


def _put(target: Any, path: Sequence[str], value: Any, flag: Flag) -> None:
    for part in path[:-1]:
        target = target.setdefault(part, {}) if isinstance(target, dict) else None
    if not isinstance(target, dict):
        raise ConfigError(f"--{flag.name}.{'.'.join(path)} lies inside a value that is no object", param=flag.name)
    target[path[-1]] = value


def _native(flag: Flag, value: Any) -> Any:
    """A value of a YAML file as the flag's own kind."""
    if flag.kind == "json" and isinstance(value, dict):
        return value
    if flag.kind in ("texts", "words", "csv"):
        items = value if isinstance(value, list) else [value]
        for item in items:
            if item is None or isinstance(item, dict | list):
                raise ConfigError(f"{flag.name} in the config file cannot hold {item!r}", param=flag.name)
        return tuple(item for v in items for item in flag.read(str(v)))
    if isinstance(value, dict | list) or value is None:
        raise ConfigError(f"{flag.name} in the config file cannot be {value!r}", param=flag.name)
    return flag.read(str(value).lower() if isinstance(value, bool) else str(value))


def _note(match: Match, out: Parsed) -> None:
    if match.renamed:
        out.warn(match.renamed)


def _check(flag: Flag, value: Any, out: Parsed) -> None:
    flag.check_value(value)
    if flag.note is not None and value != flag.default:
        out.warn(f"--{flag.name} has no effect: {flag.note}")


def _once(warn: Warn) -> Warn:
    said: set[str] = set()

    def say(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            warn(sentence)

    return say
