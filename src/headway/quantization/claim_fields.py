"""Fields of a quantization section, read with a precise complaint: the file comes from anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import ArtifactError, NotBuiltError

Claim = Mapping[str, Any]


def integer(claim: Claim, names: tuple[str, ...], default: int | None = None) -> int:
    """The first of `names` that is there. Raises ArtifactError (`invalid_quantization`)."""
    for name in names:
        value = claim.get(name)
        if value is not None:
            if type(value) is not int or not -1 <= value <= 1 << 20:
                raise invalid(claim, f"{name} must be a whole number, got {value!r:.40}")
            return value
    if default is None:
        raise invalid(claim, f"it does not say {' or '.join(names)}")
    return default


def flag(claim: Claim, name: str, default: bool) -> bool:
    """Raises ArtifactError (`invalid_quantization`)."""
    value = claim.get(name)
    if value is None:
        return default
    if type(value) is not bool:
        raise invalid(claim, f"{name} must be true or false, got {value!r:.40}")
    return value


def group_size(claim: Claim, names: tuple[str, ...], default: int | None = None) -> int:
    """Inputs that share a scale; -1 = all of them. Raises ArtifactError (`invalid_quantization`)."""
    size = integer(claim, names, default)
    if size == 0:
        raise invalid(claim, f"{names[0]} must be -1 (the whole column) or positive, got 0")
    return size


def word(claim: Claim, name: str, default: str) -> str:
    """In lower case. Raises ArtifactError (`invalid_quantization`)."""
    value = claim.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise invalid(claim, f"{name} must be a word, got {value!r:.40}")
    return value.lower()


def section(claim: Claim, name: str) -> Claim:
    """An object, empty when it is not there. Raises ArtifactError (`invalid_quantization`)."""
    value = claim.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid(claim, f"{name} must be an object, got {value!r:.40}")
    return value


def invalid(claim: Claim, problem: str) -> ArtifactError:
    """ArtifactError (`invalid_quantization`)."""
    return ArtifactError(
        f"the quantization section of {claim.get('source', 'config.json')} is not valid: {problem}",
        reason="invalid_quantization", param="quantization", fix="Use the configuration that belongs to these weights.",
    )  # fmt: skip


def not_read(claim: Claim, what: str, readable: str) -> NotBuiltError:
    """NotBuiltError (`quantization_not_built`)."""
    return NotBuiltError(
        f"{claim.get('source', 'config.json')} says the weights are {what}, which this version does not read; it reads {readable}",
        reason="quantization_not_built", param="quantization",
        fix="Use the unquantized checkpoint of the model, or one of the formats in docs/models.md.",
    )  # fmt: skip
