"""Matrices that reach the kernels as integers: which of a model, and how their rows are read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import torch

from headway.artifacts.card import TensorInfo
from headway.capacity.weight_bytes import NO_INTEGERS, IntegerShare
from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight, stacked
from headway.kernels.interface import IntegerKernels
from headway.layers.linear import Linear
from headway.models.fill import Fillable, Stack, module_at, stacks_of
from headway.models.online_rounding import rounding_of
from headway.models.sized_config import SizedConfig
from headway.models.weight_rules import PlacedWeight
from headway.models.weight_transforms import TRANSFORMS, keeps_rows, row_order
from headway.quantization.dense import DENSE_DTYPES
from headway.quantization.integer_form import integer_form
from headway.quantization.online import online_form, online_integers
from headway.quantization.weight_reader import WeightReader

_ROWS: Final = 256  # quantized at once


def loaded_stacks(
    model: Fillable, weights: Sequence[PlacedWeight], tensors: Mapping[str, TensorInfo], *, head: bool, rounding: str | None,
    kernels: IntegerKernels | None,
) -> list[Stack]:  # fmt: skip
    """What the modules of `model` take. A `head` that is tied to the embedding reads the tensor of that itself where it becomes something
    else than a copy: integers, or rounded by the online method."""
    stacks = stacks_of(model, weights)
    table = next((stack for stack in stacks if stack.module == "embedding"), None)
    if head and table is not None and not any(stack.module == "head" for stack in stacks):
        own = replace(table, module="head")
        if rounding_of(own, rounding) is not None or integer_forms(model, [own], tensors, kernels, rounding):
            stacks.append(own)
    return stacks


def integer_forms(
    model: Fillable, stacks: Sequence[Stack], tensors: Mapping[str, TensorInfo], kernels: IntegerKernels | None, method: str | None
) -> dict[str, IntegerForm]:
    """Path -> form of the modules of `model` whose matrices stay integers: all parts are stored so, or made so by the online `method`,
    and the kernels compute with the form that holds them all."""
    if kernels is None:
        return {}
    found = {}
    for stack in stacks:
        form = _form(stack, tensors, method) if isinstance(module_at(model, stack.module), Linear) else None
        if form is not None and kernels.held_bytes(form, *stack.shape) is not None:
            found[stack.module] = form
    return found


def integer_share(forms: Mapping[str, IntegerForm], stacks: Sequence[Stack], kernels: IntegerKernels | None) -> IntegerShare:
    """Of the matrices that `integer_forms` found."""
    share = NO_INTEGERS
    for stack in stacks:
        if kernels is not None and stack.kind == "weight" and stack.module in forms:
            nbytes = kernels.held_bytes(forms[stack.module], *stack.shape)
            assert nbytes is not None
            share = IntegerShare(share.parameters + math.prod(stack.shape), share.nbytes + nbytes)
    return share


def _form(stack: Stack, tensors: Mapping[str, TensorInfo], method: str | None) -> IntegerForm | None:
    if stack.kind != "weight" or len(stack.shape) != 2:
        return None
    forms = []
    for part in stack.parts:
        info = part.stored(tensors)
        if info.dtype in DENSE_DTYPES:
            rounding = rounding_of(stack, method)
            form = None if rounding is None else online_form(rounding, stack.shape[1])
        else:
            form = integer_form(info) if keeps_rows(part.rule.transform) else None
        if form is None:
            return None
        forms.append(form)
    return reduce(IntegerForm.joined, forms)


@dataclass(frozen=True, slots=True)
class IntegerReader:
    """Reads stacks that `integer_forms` found."""

    reader: WeightReader
    tensors: Mapping[str, TensorInfo]
    config: SizedConfig
    method: str | None

    def matrix(self, stack: Stack, form: IntegerForm) -> IntegerMatrix:
        out, width = stack.shape
        return IntegerMatrix(form, out, width, (chunk.as_form(form) for part in stack.parts for chunk in self._chunks(stack, part)))

    def _chunks(self, stack: Stack, part: PlacedWeight) -> Iterator[IntegerWeight]:
        info, transform = part.stored(self.tensors), part.rule.transform
        rounding = rounding_of(stack, self.method)
        if info.dtype in DENSE_DTYPES and rounding is not None:
            dense = torch.empty(info.shape, dtype=stack.dtype)
            self.reader.read_into(info, dense)
            turned = dense if transform is None else TRANSFORMS[transform](dense, self.config)
            yield from (online_integers(rows, rounding) for rows in torch.split(turned, _ROWS))
            return
        order = row_order(transform, info.shape[0], self.config)
        if order is None:
            yield from self.reader.integers(info)
        else:
            yield stacked(list(self.reader.integers(info))).taken(order)
