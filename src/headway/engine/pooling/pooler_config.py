"""PoolerConfig: what `--pooler-config` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from headway.errors import ConfigError

Pooling = Literal["LAST", "MEAN"]
_POOLINGS: Final = ("LAST", "MEAN")
_OLD_NAMES: Final = {"seq_pooling_type": "pooling_type", "normalize": "use_activation"}
_KNOWN: Final = ("pooling_type", "use_activation", "dimensions")


@dataclass(frozen=True, slots=True)
class PoolerConfig:
    """What a request gets that does not say otherwise. `use_activation`: vectors of unit length, classes as probabilities."""

    pooling: Pooling = "LAST"
    use_activation: bool = True
    dimensions: int | None = None


USUAL: Final = PoolerConfig()


def read_pooler_config(given: Mapping[str, Any]) -> PoolerConfig:
    """`pooling_type` (or `seq_pooling_type`): LAST or MEAN; `use_activation` (or `normalize`); `dimensions`. Raises ConfigError."""
    fields = {_OLD_NAMES.get(name, name): value for name, value in given.items() if value is not None}
    if strange := sorted(map(str, fields.keys() - set(_KNOWN))):
        raise _wrong(f"--pooler-config has the unknown keys {', '.join(strange)[:200]}", f"Known are {', '.join((*_KNOWN, *_OLD_NAMES))}.")
    pooling = str(fields.get("pooling_type", "LAST")).upper()
    if pooling not in _POOLINGS:
        raise _wrong(f"--pooler-config pooling_type is {pooling[:40]!r}, a causal model is read as LAST or MEAN", "Give one of the two.")
    activation, dimensions = fields.get("use_activation", True), fields.get("dimensions")
    if not isinstance(activation, bool):
        raise _wrong(f"--pooler-config use_activation must be true or false, got {activation!r:.40}")
    if dimensions is not None and (not isinstance(dimensions, int) or isinstance(dimensions, bool) or dimensions < 1):
        raise _wrong(f"--pooler-config dimensions must be an integer of at least 1, got {dimensions!r:.40}")
    return PoolerConfig(cast(Pooling, pooling), activation, dimensions)


def _wrong(message: str, fix: str | None = None) -> ConfigError:
    return ConfigError(message, param="pooler_config", fix=fix)
