"""Where the inputs of a matrix can be scaled without changing what the model computes: by whatever makes them.

x -> W x equals x / s -> (W diag(s)) x. The division by s belongs to what comes before: the weight of a norm, or the rows of the matrix
whose outputs are the inputs, if nothing that bends numbers lies between.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headway.models.decoder_config import DecoderConfig


@dataclass(frozen=True, slots=True)
class Fold:
    """`matrices` read the same inputs, `plain` (routers) too, but are not compressed. `producer` divides: a norm, or the rows of a stack from
    `first_row` on. Each of those rows makes the inputs of `repeats` heads of `head` inputs; with repeats 1 there is a row for each input."""

    matrices: tuple[str, ...]
    producer: str
    norm: bool
    plain: tuple[str, ...] = ()
    first_row: int = 0
    repeats: int = 1
    head: int = 1


def folds(config: DecoderConfig, layer: int, modules: Collection[str]) -> tuple[Fold, ...]:
    """Of a layer whose stacks belong to `modules`."""
    at = f"layers.{layer}."
    found = []
    experts = sorted(
        {name.rsplit(".", 1)[0] for name in modules if name.startswith(f"{at}mlp.experts.")}, key=lambda name: int(name.rsplit(".", 1)[1])
    )
    feeds = [f"{name}.gate_up" for name in experts] or [f"{at}mlp.gate_up" if config.gated_mlp else f"{at}mlp.up"]
    routers = (f"{at}mlp.router",) if experts else ()
    attention_norm, mlp_norm, qkv = f"{at}attention_norm", f"{at}mlp_norm", f"{at}attention.qkv"
    if attention_norm in modules:
        shared = feeds if config.parallel_residual and not config.mlp_norm else []
        found.append(Fold((qkv, *shared), attention_norm, norm=True))
    if mlp_norm in modules:
        found.append(Fold(tuple(feeds), mlp_norm, norm=True, plain=routers))
    found.append(
        Fold((f"{at}attention.output.projection",), qkv, norm=False, first_row=(config.num_heads + config.num_kv_heads) * config.head_dim,
             repeats=config.num_heads // config.num_kv_heads, head=config.head_dim)
    )  # fmt: skip
    if config.gated_mlp:
        size = config.experts.intermediate_size if experts and config.experts is not None else config.intermediate_size
        downs = [(f"{name}.down", f"{name}.gate_up") for name in experts] or [(f"{at}mlp.down.projection", f"{at}mlp.gate_up")]
        found += [Fold((down,), up, norm=False, first_row=size) for down, up in downs]
    return tuple(found)
