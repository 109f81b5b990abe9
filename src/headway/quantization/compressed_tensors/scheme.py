"""How a group of modules is quantized, as the section `config_groups` says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headway.quantization.claim_fields import Claim, flag, group_size, integer, invalid, section, word
from headway.quantization.name_patterns import begins_with
from headway.quantization.scaled_numbers import Blocks, sides_of

_STRATEGIES: Final = ("tensor", "channel", "group", "tensor_group", "block")


@dataclass(frozen=True, slots=True)
class Scheme:
    """`kind` is "int" or "float"; `packing` the format of the group, in words of compressed-tensors."""

    targets: tuple[str, ...]
    packing: str
    kind: str
    bits: int
    symmetric: bool
    blocks: Blocks


def schemes(claim: Claim) -> tuple[Scheme, ...]:
    """Raises ArtifactError (`invalid_quantization`)."""
    packing = word(claim, "format", "dense")
    found = []
    for name, group in section(claim, "config_groups").items():
        if not isinstance(group, Mapping):
            raise invalid(claim, f"config_groups {name!r:.40} must be an object, got {group!r:.40}")
        weights = section(group, "weights")
        if weights:
            found.append(_scheme(claim, group, weights, packing))
    if not found:
        raise invalid(claim, "config_groups has no group with weights")
    return tuple(found)


def scheme_of(module: str, known: tuple[Scheme, ...]) -> Scheme | None:
    """A module named in full comes before patterns (`re:...`), and those before classes (`Linear`), of which the module's is not known."""
    for matches in (_named, _matched, _by_class):
        for scheme in known:
            if any(matches(module, target) for target in scheme.targets):
                return scheme
    return None


def _named(module: str, target: str) -> bool:
    return module == target


def _matched(module: str, target: str) -> bool:
    return target.startswith("re:") and begins_with(module, target.removeprefix("re:"))


def _by_class(module: str, target: str) -> bool:
    return target == "Linear"


def _scheme(claim: Claim, group: Claim, weights: Claim, packing: str) -> Scheme:
    targets = group.get("targets")
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        raise invalid(claim, f"targets must be a list of words, got {targets!r:.40}")
    strategy = word(weights, "strategy", "group" if weights.get("group_size") not in (None, -1) else "tensor")
    if strategy not in _STRATEGIES:
        raise invalid(claim, f"strategy must be one of {', '.join(_STRATEGIES)}, got {strategy!r:.40}")
    return Scheme(
        tuple(targets), word(group, "format", packing), word(weights, "type", "int"), integer(weights, ("num_bits",), 8),
        flag(weights, "symmetric", True), _blocks(claim, weights, strategy),
    )  # fmt: skip


def _blocks(claim: Claim, weights: Claim, strategy: str) -> Blocks:
    if strategy == "tensor":
        return Blocks(None, None)
    if strategy == "channel":
        return Blocks(1, None)
    if strategy != "block":
        size = group_size(weights, ("group_size",))
        return Blocks(1, None if size == -1 else size)
    return sides_of(claim, weights, "block_structure")
