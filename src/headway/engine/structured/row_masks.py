"""Forms applied to the logits of a step."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

import torch

from headway.errors import StepError
from headway.kernels.sampling import SamplingKernels

if TYPE_CHECKING:
    from headway.engine.sequence import Sequence


def keep_to_forms(logits: torch.Tensor, sequences: Many[Sequence], rows: list[int], kernels: SamplingKernels) -> None:
    """Set to -inf, in place, what the forms of `rows` of `logits` [N, V] float32 do not allow next.

    A row that stands for a sequence and drafts behind it may have left its form: then the draft before it is not allowed, and nobody will
    look at the row. Raises StepError when a sequence itself has; which one is found by trying each alone.
    """
    from xgrammar import get_bitmask_shape  # loaded where there are forms

    masks = torch.empty(get_bitmask_shape(*logits.shape), dtype=torch.int32)
    bound = []
    for row in rows:
        sequence = sequences[row]
        if sequence.form is None:
            continue
        try:
            if sequence.form.fill(sequence.tokens, sequence.num_prompt, masks, row):
                bound.append(row)
        except StepError:
            if sequence.request.sequences[sequence.index] is sequence:
                raise
    if bound:
        kernels.forbid(logits, masks, bound)
