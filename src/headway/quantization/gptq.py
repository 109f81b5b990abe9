"""GPTQ: 2, 3, 4 or 8 bits packed along the inputs, zero points along the outputs, optionally with inputs in an order of their own.

`qweight` int32 [in bits/32, out], `qzeros` int32 [in/group, out bits/32], `scales` float16 [in/group, out], `g_idx` int32 [in]: the
group of each input. w = (q - z) s; files of the first version store z - 1. Source: QuantLinear of AutoGPTQ and GPTQModel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch

from headway.quantization.bit_fields import unpack_words
from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, flag, group_size, integer, invalid, not_read, section, word
from headway.quantization.grouped_affine import GroupedAffine, affine_layout
from headway.quantization.name_patterns import begins_with
from headway.quantization.packed_weight import FLOATS, WHOLE, Axis, PackedLayout, Part, Parts, bad_values, finite

_BITS: Final = (2, 3, 4, 8)
_READABLE: Final = "GPTQ of 2, 3, 4 or 8 bits in the formats gptq and gptq_v2"


@dataclass(frozen=True, slots=True)
class Settings:
    """`zero_offset` is what must be added to a stored zero point; `symmetric` = all of them are in the middle; `reordered` = inputs may
    belong to any group."""

    bits: int
    group: int
    zero_offset: int
    symmetric: bool
    reordered: bool


@dataclass(frozen=True, slots=True)
class Gptq:
    """Settings of all modules, and of those whose name begins with a pattern; None = left as they were."""

    settings: Settings
    exceptions: tuple[tuple[str, Settings | None], ...] = ()
    endings: frozenset[str] = frozenset({"qweight", "qzeros", "scales", "g_idx"})
    unused: frozenset[str] = frozenset()

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        found = next((each for pattern, each in self.exceptions if each is not None and begins_with(module, pattern)), self.settings)
        first = stored.get("qweight") or next(iter(stored.values()))
        out, words = (first.shape[1], first.shape[0]) if len(first.shape) == 2 else (0, 0)
        # Words may be filled up; the groups of inputs are as many as inputs.
        width = stored["g_idx"].elements if "g_idx" in stored else words * 32 // found.bits
        return _layout(found, "g_idx" in stored, width), (out, width)


def gptq(claim: Claim) -> Gptq:
    """Raises ArtifactError (`invalid_quantization`), NotBuiltError (`quantization_not_built`)."""
    version = word(claim, "checkpoint_format", word(claim, "format", "gptq"))
    if word(claim, "quant_method", "gptq") == "gptq_v2":
        version = "gptq_v2"
    if version not in ("gptq", "gptq_v2") or word(claim, "quant_method", "gptq") == "marlin" or flag(claim, "is_marlin_format", False):
        raise not_read(claim, f"GPTQ in the format {version if version != 'gptq' else 'marlin'!r:.40}", _READABLE)
    common = _settings(claim, claim, version)
    exceptions: list[tuple[str, Settings | None]] = []
    for name, value in section(claim, "dynamic").items():
        if name.startswith("-:"):
            exceptions.append((name[2:], None))
        elif isinstance(value, Mapping):
            exceptions.append((name.removeprefix("+:"), _settings(claim, {**claim, **value}, version)))
        else:
            raise invalid(claim, f"dynamic {name!r:.60} must be an object, got {value!r:.40}")
    return Gptq(common, tuple(exceptions))


def _settings(claim: Claim, values: Claim, version: str) -> Settings:
    bits = integer(values, ("bits", "w_bit"))
    if bits not in _BITS:
        raise not_read(claim, f"GPTQ of {bits} bits", _READABLE)
    return Settings(
        bits, group_size(values, ("group_size", "q_group_size"), 128), 1 if version == "gptq" else 0, flag(values, "sym", False),
        flag(values, "desc_act", False),
    )  # fmt: skip


def _layout(settings: Settings, indexed: bool, width: int) -> PackedLayout:
    bits = settings.bits
    group = max(width, 1) if settings.group == -1 else settings.group
    count = -(-width // group)
    # Inputs in any order need the scales of all groups on every rank.
    groups = WHOLE if settings.group == -1 else Axis("whole", entries=count) if settings.reordered else Axis("in", group)
    title = (
        f"GPTQ int{bits}, {'one group' if settings.group == -1 else f'groups of {group}'}{', reordered' if settings.reordered else ''}"
        f"{', symmetric' if settings.symmetric else ''}, zero points {'+ 1' if settings.zero_offset else 'as they are'}"
    )
    parts = {
        "qweight": Part(("I32",), (Axis("in", 32, bits), Axis("out"))),
        "qzeros": Part(("I32",), (groups, Axis("out", 32, bits))),
        "scales": Part(FLOATS, (groups, Axis("out"))),
    }
    if indexed:
        parts["g_idx"] = Part(("I32", "I64"), (Axis("in"),))

    def read(found: Parts, rows: range) -> GroupedAffine:
        words = found["qweight"].t()
        q = unpack_words(words, bits, len(found["g_idx"]) if indexed else words.shape[-1] * 32 // bits)
        zeros = unpack_words(found["qzeros"], bits, len(rows)).t().float() + settings.zero_offset
        if settings.symmetric:
            _check_middle(title, zeros, settings)
        index = _groups(title, found.get("g_idx"), settings, group, count)
        return GroupedAffine(q, finite(title, found["scales"]).t(), zeros, index)

    return affine_layout(
        title, parts, read, bits=bits, width=width, group=None if settings.reordered and settings.group != -1 else group, symmetric=settings.symmetric
    )


def _groups(title: str, stored: torch.Tensor | None, settings: Settings, group: int, count: int) -> int | torch.Tensor:
    if stored is None:
        return group
    index = stored.long()
    if int(index.min()) < 0 or int(index.max()) >= count:
        raise bad_values(title, f"g_idx names group {int(index.max())}, the weight has {count}")
    # A rank that has the inputs from some group on has the scales from there on, too.
    in_order = torch.equal(index - index[0], torch.arange(len(index)) // group)
    if not settings.reordered and (in_order or not bool(index.any())):  # all zeros: a placeholder
        return group
    if not settings.reordered:
        raise bad_values(title, "g_idx gives inputs to groups out of order, and the configuration says desc_act false",
                         "Set desc_act to true in the quantization section if the weights were quantized with act-order.")  # fmt: skip
    return index


def _check_middle(title: str, zeros: torch.Tensor, settings: Settings) -> None:
    """Symmetric weights have one zero point; where it is off by one, the version of the format is the wrong one."""
    middle = 1 << (settings.bits - 1)
    if not bool((zeros == middle).all()):
        raise bad_values(
            title, f"the configuration says sym true, so all zero points must be {middle}; the file has {int(zeros.min())} to"
            f" {int(zeros.max())} when read as checkpoint_format {'gptq' if settings.zero_offset else 'gptq_v2'}",
            "Correct checkpoint_format (gptq stores zero points less one, gptq_v2 as they are) or sym in the quantization section.",
        )  # fmt: skip
