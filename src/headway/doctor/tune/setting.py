"""What is varied: knobs, their values, and one choice of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from headway.errors import ConfigError

Goal = Literal["throughput", "ttft", "itl"]
GOALS: Final[tuple[Goal, ...]] = ("throughput", "ttft", "itl")

Setting = tuple[tuple[str, str], ...]
"""(knob, value) in the order of the knobs; a knob that is absent has the server's default."""


@dataclass(frozen=True, slots=True)
class Knob:
    """`name`: the flag with underscores. `values`: from small to large, as they are typed."""

    name: str
    values: tuple[str, ...]


# What the usual tuning loop varies, by goal, the most promising first. Memory is given by its share on accelerators only.
KNOBS: Final[Mapping[Goal, tuple[Knob, ...]]] = {
    "throughput": (
        Knob("max_num_seqs", ("8", "16", "32", "64", "128", "256", "512", "1024")),
        Knob("max_num_batched_tokens", ("512", "1024", "2048", "4096", "8192")),
    ),
    "ttft": (
        Knob("max_num_batched_tokens", ("512", "1024", "2048", "4096", "8192")),
        Knob("max_num_seqs", ("8", "16", "32", "64", "128", "256")),
        Knob("long_prefill_token_threshold", ("0", "256", "512", "1024")),
    ),
    "itl": (
        Knob("max_num_batched_tokens", ("128", "256", "512", "1024", "2048", "4096")),
        Knob("max_num_seqs", ("1", "2", "4", "8", "16", "32", "64", "128")),
    ),
}
GPU_MEMORY: Final = Knob("gpu_memory_utilization", ("0.70", "0.85", "0.90", "0.95"))


def knobs_for(goal: Goal, asked: Sequence[str], has_gpu: bool) -> tuple[Knob, ...]:
    """The table's knobs, or those that were asked for as `name=value,value`. Raises ConfigError."""
    if not asked:
        return (*KNOBS[goal], GPU_MEMORY) if has_gpu else KNOBS[goal]
    return tuple(_parsed(text) for text in asked)


def _parsed(text: str) -> Knob:
    name, _, values = text.lstrip("-").partition("=")
    chosen = tuple(value.strip() for value in values.split(",") if value.strip())
    if not name or len(chosen) < 2:
        raise ConfigError(
            f"--knob must be NAME=VALUE,VALUE with at least two values, found {text!r}", param="knob", fix="For example --knob max_num_seqs=8,32,128."
        )
    return Knob(name.replace("-", "_"), chosen)


def with_value(setting: Setting, knob: str, value: str) -> Setting:
    rest = tuple(pair for pair in setting if pair[0] != knob)
    return tuple(sorted((*rest, (knob, value))))


def flags(setting: Setting) -> list[str]:
    """The words of a command line."""
    return [word for name, value in setting for word in (f"--{name.replace('_', '-')}", value)]


def flag_line(setting: Setting) -> str:
    return shlex.join(flags(setting))
