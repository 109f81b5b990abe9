"""Ranks that share a model write what transformers writes, whatever is divided."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.errors import HeadwayError
from headway.kvcache.runs import Run, forward_batch
from tests.models.sharded.rank_threads import divided_logits, whole_plan
from tests.models.tiny_models import CONFIGS, VARIANTS, TinyModel
from tests.models.tiny_sizes import SERVED

PROMPT = [3, 17, 40, 9, 55, 21, 8, 30, 2, 61, 44, 7, 19, 5, 28, 33, 12, 50, 11, 4]


def _batches(tokens: list[int]) -> list:
    """A chunk of a prompt, the rest, then a token at a time."""
    table = [1, 2, 3]
    cuts = [(0, 7), (7, 11), (18, 1), (19, 1)]
    return [forward_batch([Run(tokens, table, start, count, [])], list(range(count)), 16) for start, count in cuts]


@pytest.mark.parametrize(("tensor", "pipeline"), [(2, 1), (1, 3), (2, 2), (4, 1)])
@pytest.mark.parametrize("name", sorted({**CONFIGS, **VARIANTS}))
def test_logits_of_transformers(tiny: Callable[[str], TinyModel], name: str, tensor: int, pipeline: int) -> None:
    model = tiny(name)
    plan = whole_plan(str(model.folder), SERVED)
    if plan.config.num_heads % tensor or pipeline > plan.config.num_layers:
        with pytest.raises(HeadwayError, match="divided"):
            divided_logits(plan, [], 4, tensor, pipeline)
        return
    found = torch.cat(divided_logits(plan, _batches(PROMPT), 4, tensor, pipeline))
    torch.testing.assert_close(found, model.logits(PROMPT), rtol=1e-4, atol=1e-4)
