"""Help on flags: an overview, one group, everything, or whatever mentions a word."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from headway.engine.flags_old import OLD_SPELLINGS
from headway.flags.flag import Flag

_WIDTH = 100
_VALUE = {
    "int": "N",
    "float": "X",
    "size": "SIZE",
    "json": "JSON",
    "texts": "TEXT",
    "words": "TEXT ...",
    "csv": "A,B,...",
    "text": "TEXT",
}
_OFTEN = (
    "host", "port", "api-key", "served-model-name", "dtype", "max-model-len", "max-num-seqs", "max-num-batched-tokens",
    "kv-cache-memory-bytes", "enable-prefix-caching", "chat-template", "config",
)  # fmt: skip


def flag_help(flags: Sequence[Flag], topic: str) -> str:
    """`topic`: "" = the flags used most, "all", the name of a group, or a word to look for."""
    word = topic.strip().lower().lstrip("-")
    if not word:
        by_name = {flag.name: flag for flag in flags}
        chosen = [by_name[name] for name in _OFTEN if name in by_name]
        groups = ", ".join(dict.fromkeys(flag.group for flag in flags))
        return "\n".join([*_lines(chosen), "", f"More: --help=all, --help=WORD, or --help=GROUP with one of {groups}."])
    if word == "all":
        return "\n".join(_grouped(flags))
    found = [f for f in flags if f.group.lower() == word] or [f for f in flags if _mentions(f, word)]
    return "\n".join(_grouped(found)) if found else f"No flag mentions {topic!r}. --help=all lists all flags."


def shown_name(flag: Flag) -> str:
    """`--max-model-len SIZE`, `--[no-]enable-prefix-caching`."""
    if flag.kind == "bool":
        return f"--[no-]{flag.name}"
    value = "{" + ",".join(flag.choices) + "}" if flag.choices else _VALUE[flag.kind]
    return f"--{flag.name} {value}"


def shown_default(flag: Flag) -> str:
    if flag.default in (None, (), {}, ""):
        return ""
    return " ".join(map(str, flag.default)) if isinstance(flag.default, tuple) else str(flag.default)


def shown_span(flag: Flag) -> str:
    """Which numbers are allowed, as a sentence; empty where all are."""
    return "" if flag.span is None else f"Allowed: {flag.span}."


def effect(flag: Flag) -> str:
    """What a reader must know beside the help; empty for flags that simply work."""
    if flag.refused:
        return f"Refused: {flag.refused}"
    if flag.note:
        return f"Accepted without effect: {flag.note}"
    if flag.feature:
        return f"Not built yet: {flag.feature}" + (f" (planned: {flag.comes})." if flag.comes else ".")
    return ""


def spellings(flag: Flag) -> list[str]:
    """Other spellings of equal rank, with dashes."""
    return [alias if alias.startswith("-") else f"--{alias}" for alias in flag.aliases]


def old_spellings(flag: Flag) -> list[str]:
    return [f"--{old}" for old, renamed in OLD_SPELLINGS.items() if renamed.new.partition(".")[0] == flag.name]


def _mentions(flag: Flag, word: str) -> bool:
    texts = (flag.name, flag.help, *flag.aliases, *old_spellings(flag))
    return any(word.replace("_", "-") in text.lower() for text in texts)


def _grouped(flags: Sequence[Flag]) -> Iterator[str]:
    for group in dict.fromkeys(flag.group for flag in flags):
        yield f"{group}:"
        yield from _lines([flag for flag in flags if flag.group == group])
        yield ""


def _lines(flags: Sequence[Flag]) -> Iterator[str]:
    for flag in flags:
        names = ", ".join([shown_name(flag), *spellings(flag)])
        default = shown_default(flag)
        text = " ".join(part for part in (flag.help, shown_span(flag), f"(default: {default})" if default else "", effect(flag)) if part)
        yield f"  {names}"
        yield textwrap.fill(text, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
