"""ALiBi against transformers."""

from __future__ import annotations

import pytest
import torch
from transformers.models.falcon.modeling_falcon import build_alibi_tensor

from headway.layers.alibi import AlibiTable


@pytest.mark.parametrize("heads", [1, 4, 6, 71])
def test_tables_equal_transformers(heads: int) -> None:
    table = AlibiTable(heads, 0.25)
    expected = build_alibi_tensor(torch.ones(1, 700, dtype=torch.int64), heads, torch.float32)[:, 0] * 0.25
    # Growing must not change what was there.
    for positions in (3, 700, 20):
        found = table.reaching(positions)
        assert found.shape[1] >= positions
        torch.testing.assert_close(found[:, :positions], expected[:, :positions], atol=0, rtol=0)
