"""Filling a model from its prepared weights where they are kept, else from the checkpoint, keeping what was prepared."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError
from headway.kernels.interface import Kernels
from headway.models.fill import Fillable, Matrix, Progress, Stack, fill_stacks, read_stack
from headway.models.float8_stacks import as_float8
from headway.models.integer_stacks import IntegerReader, integer_forms, integer_share, loaded_stacks
from headway.models.online_rounding import round_stack
from headway.models.prepared.file_layout import layout
from headway.models.prepared.folder import make_room, mark_used, path_of, prepared_folder, preparing
from headway.models.prepared.growing_file import GrowingFile
from headway.models.prepared.identity import preparation_key, worth_keeping
from headway.models.prepared.mapped_file import MappedStacks, mapped_stacks
from headway.models.prepared.switch import VARIABLE, most_bytes
from headway.models.weight_log import log_weights
from headway.models.weight_rules import PlacedWeight
from headway.quantization.weight_reader import WeightReader

_log = logging.getLogger(__name__)


def fill_from_card(
    model: Fillable, card: ModelCard, weights: Sequence[PlacedWeight], kernels: Kernels, progress: Progress, *, head: bool = True,
    rounding: str | None = None,
) -> None:  # fmt: skip
    """`fill` from the files of `card`; `rounding` is a method of `quantization.online`. Matrices that the `kernels` of the model compute with
    as integers are packed as the checkpoint has them, so nothing of them is kept. Whatever is wrong with the cache costs time, never the
    model.

    Raises ConfigError for a switch that cannot be read, and what `WeightReader` raises."""
    stacks = loaded_stacks(model, weights, card.tensors, head=head, rounding=rounding, kernels=kernels.integers)
    forms = integer_forms(model, stacks, card.tensors, kernels.integers, rounding)
    dense = [stack for stack in stacks if stack.kind != "weight" or stack.module not in forms]
    log_weights(stacks, dense, card.tensors, integer_share(forms, stacks, kernels.integers), kernels.name, rounding)
    key = _key(model, card, dense, rounding) if _may_be_kept(card, dense) else None
    mapped = None if key is None else _mapped(path_of(key), dense)
    with _keeping(key if mapped is None else None, dense) as kept, WeightReader(card) as reader:
        packed = IntegerReader(reader, card.tensors, model.config, rounding)

        def stack_of(stack: Stack) -> Matrix:
            if stack.kind == "weight" and stack.module in forms:
                return packed.matrix(stack, forms[stack.module])
            if mapped is not None:
                return as_float8(stack, mapped(stack), rounding, kernels.float8)
            tensor = read_stack(stack, reader.read_into, card.tensors, model.config)
            round_stack(stack, tensor, rounding)
            kept.add(stack, tensor)
            return as_float8(stack, tensor, rounding, kernels.float8)

        fill_stacks(model, card.tensors, stacks, stack_of, progress, head=head, device=kernels.device)
    if mapped is not None:
        mapped.let_go()


def _may_be_kept(card: ModelCard, stacks: Sequence[Stack]) -> bool:
    """Known before the checkpoint is hashed, which takes long when it is large."""
    most = most_bytes()
    if not most or not worth_keeping(stacks, card.tensors):
        return False
    needed = layout(stacks, {}).size
    if needed > most:
        _log.info("prepared weights of %d bytes are not kept: at most %d bytes are (%s)", needed, most, VARIABLE)
    return needed <= most


def _key(model: Fillable, card: ModelCard, stacks: Sequence[Stack], rounding: str | None) -> str | None:
    try:
        return preparation_key(stacks, card.tensors, model.config, prepared_folder() / "digests", rounding)
    except OSError as error:
        _log.warning("weights of %s are prepared anew: %s", card.reference, error)
        return None


def _mapped(path: Path, stacks: Sequence[Stack]) -> MappedStacks | None:
    """None when there is no such file, or none that can be used; a damaged one is made again."""
    try:
        found = mapped_stacks(path, stacks)
    except FileNotFoundError:
        return None
    except (ArtifactError, OSError, ValueError) as error:
        _log.warning("prepared weights cannot be used and are made again: %s", error)
        return None
    mark_used(path)
    _log.info("Using prepared weights %s", path)
    return found


@contextlib.contextmanager
def _keeping(key: str | None, stacks: Sequence[Stack]) -> Iterator[_Kept]:
    """Where what is read is kept. A load that fails leaves nothing behind."""
    with contextlib.ExitStack() as held:
        kept = _Kept()
        if key is not None:
            try:
                kept.file = _begun(key, stacks, held)
            except OSError as error:
                _log.warning("prepared weights are not kept: %s", error)
        try:
            yield kept
        except BaseException:
            kept.abandon()
            raise
        kept.finish()


def _begun(key: str, stacks: Sequence[Stack], held: contextlib.ExitStack) -> GrowingFile | None:
    path = path_of(key)
    if not held.enter_context(preparing(path)):
        _log.info("another process is preparing the same weights; this one keeps nothing")
        return None
    return GrowingFile(path, stacks, key) if make_room(path.parent, layout(stacks, {}).size, most_bytes()) else None


class _Kept:
    """A file that grows until something goes wrong with it."""

    def __init__(self) -> None:
        self.file: GrowingFile | None = None

    def add(self, stack: Stack, tensor: torch.Tensor) -> None:
        if self.file is not None:
            try:
                self.file.add(stack, tensor)
            except OSError as error:
                self._failed(error)

    def finish(self) -> None:
        if self.file is not None:
            try:
                self.file.finish()
            except OSError as error:
                self._failed(error)

    def abandon(self) -> None:
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.abandon()
            self.file = None

    def _failed(self, error: OSError) -> None:
        _log.warning("prepared weights are not kept: %s", error)
        self.abandon()
