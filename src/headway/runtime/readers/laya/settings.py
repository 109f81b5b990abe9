"""What a package of this family says of itself: `rl_agent_config.json`, or `julia_config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from headway.decisions.buckets import bucket_of
from headway.decisions.question import QuestionType
from headway.errors import PackageError

SETTINGS_FILES: Final = ("rl_agent_config.json", "julia_config.json")
KINDS: Final[Mapping[QuestionType, int]] = {"choice": 0, "score": 1, "noul": 2}  # rows of the type embedding
LEAST_TEMPERATURE: Final = 0.5  # published packages hold fits down to 0.1, which would call a guess a certainty
MOST_TEMPERATURE: Final = 5.0
# Where a file does not say: as the package `laya` 0.4.15 and llama.cpp b11434 assume.
_DEFAULT_MAX_TOKENS: Final = 512
_DEFAULT_HEAD_TOKENS: Final = {"laya": 192, "julia": 256}


@dataclass(frozen=True, slots=True)
class LayaSettings:
    """`style`: how options are written. `max_tokens` of a sequence, of which `head_tokens` for question and options.
    `actions` are the classes of the second head. `temperatures` by "<type>" and "<type>:<bucket>", within the bounds above."""

    style: Literal["laya", "julia"]
    head_layers: int
    max_tokens: int
    head_tokens: int
    actions: int
    temperatures: Mapping[str, float]

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self.temperatures.get(f"{kind}:{bucket_of(options)}", self.temperatures.get(kind, 1.0))


def parse_settings(name: str, found: Mapping[str, Any]) -> LayaSettings:
    """`found` is the content of the file `name`, one of `SETTINGS_FILES`.

    Raises PackageError (`invalid_package`, `unsupported_layout`).
    """
    style: Literal["laya", "julia"] = "julia" if name == "julia_config.json" else "laya"
    layout = found.get("option_layout", "sequential")
    if layout != "sequential":
        raise PackageError(
            f"{name}: the option layout {layout!r} is not served; of the published ones, 'sequential' is",
            reason="unsupported_layout", param="option_layout", fix="Use a package with sequential options.",
        )  # fmt: skip
    costs = found.get("act_costs", {})
    max_tokens = _count(name, found, "max_len", _DEFAULT_MAX_TOKENS, least=32)
    return LayaSettings(
        style, _count(name, found, "head_layers", None, least=0), max_tokens,
        min(_count(name, found, "head_max_len", _DEFAULT_HEAD_TOKENS[style], least=24), max_tokens),
        1 + len(costs) if isinstance(costs, Mapping) else _invalid(name, "act_costs must be an object"),
        _temperatures(name, found),
    )  # fmt: skip


def _temperatures(name: str, found: Mapping[str, Any]) -> dict[str, float]:
    by_type, by_options = found.get("temperature", [1.0, 1.0, 1.0]), found.get("temperature_by_options", {})
    if not isinstance(by_type, list) or len(by_type) != len(KINDS):
        _invalid(name, "temperature must be a list of three numbers, for choice, score and noul")
    if not isinstance(by_options, Mapping):
        _invalid(name, "temperature_by_options must be an object")
    return {
        **{kind: _within_bounds(by_type[index]) for kind, index in KINDS.items()},
        **{str(bucket): _within_bounds(value) for bucket, value in by_options.items()},
    }


def _within_bounds(value: Any) -> float:
    """1 for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        return 1.0
    return min(MOST_TEMPERATURE, max(LEAST_TEMPERATURE, float(value)))


def _count(name: str, found: Mapping[str, Any], key: str, default: int | None, least: int) -> int:
    value = found.get(key, default)
    if type(value) is not int or not least <= value <= 1 << 20:
        _invalid(name, f"{key} must be a number from {least} on, found {value!r:.40}")
    return value


def _invalid(name: str, what: str) -> NoReturn:
    raise PackageError(f"{name}: {what}", reason="invalid_package", param=name, fix="Download the package again.")
