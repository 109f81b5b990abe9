"""Small layers, each against what it says it computes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from headway.kernels.torch_backend import TORCH
from headway.layers.embedding import Embedding
from headway.layers.gated_mlp import GatedMLP
from headway.layers.layer_norm import HeadLayerNorm
from headway.layers.lm_head import LMHead
from headway.layers.plain_mlp import PlainMLP
from headway.layers.position_embedding import PositionEmbedding
from headway.layers.residual_projection import ResidualProjection
from headway.layers.rms_norm import HeadNorm, RMSNorm


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_the_embedding_scale_is_rounded_like_the_table() -> None:
    table = torch.ones(3, 2, dtype=torch.bfloat16)
    embedding = Embedding(TORCH, 25.298, rounded=True)
    embedding.load(table)
    assert embedding(torch.tensor([1])).tolist() == [[25.25, 25.25]]
    assert table.eq(1).all()


def test_ids_outside_the_table_are_errors() -> None:
    embedding = Embedding(TORCH)
    embedding.load(randn(3, 2))
    with pytest.raises(IndexError):
        embedding(torch.tensor([3]))


def test_softcap_bounds_the_logits() -> None:
    head, weight, x = LMHead(TORCH, 5.0), randn(9, 4) * 10, randn(2, 4, seed=1)
    head.load(weight)
    torch.testing.assert_close(head(x), torch.tanh(x @ weight.T / 5) * 5)


def test_logits_are_float32_whatever_the_weights() -> None:
    head = LMHead(TORCH, None)
    head.load(randn(9, 4).bfloat16())
    assert head(randn(2, 4).bfloat16()).dtype == torch.float32


def test_the_norm_of_a_residual_projection_is_before_the_addition() -> None:
    weight, scale, x, residual = randn(6, 4), randn(6, seed=1), randn(3, 4, seed=2), randn(3, 6, seed=3)
    norm = RMSNorm(TORCH, 1e-6)
    norm.load(scale)
    layer = ResidualProjection(TORCH, norm)
    layer.projection.load(weight)
    torch.testing.assert_close(layer(residual, x), residual + F.rms_norm(x @ weight.T, (6,), scale, 1e-6))


def test_heads_are_normalised_with_the_weight_of_their_kind() -> None:
    weight, rows = randn(16, seed=1), randn(5, 6, 8)
    expected = torch.cat(
        (F.rms_norm(rows[:, :4], (8,), weight[:8], 1e-6), F.rms_norm(rows[:, 4:], (8,), weight[8:], 1e-6)), 1
    )
    norm = HeadNorm(TORCH, 1e-6, 4, 2)
    norm.load(weight)
    norm(rows)
    torch.testing.assert_close(rows, expected)


def test_layer_norm_of_heads_has_a_weight_for_every_head() -> None:
    weight, rows = randn(48, seed=1), randn(5, 6, 8)
    expected = torch.stack([F.layer_norm(rows[:, i], (8,), weight[i * 8 : i * 8 + 8], None, 1e-5) for i in range(6)], 1)
    norm = HeadLayerNorm(TORCH, 1e-5, 4, 2)
    norm.load(weight)
    norm(rows)
    torch.testing.assert_close(rows, expected)


def test_learned_positions_end_where_the_table_ends() -> None:
    table, x = randn(5, 4), randn(2, 4, seed=1)
    positions = PositionEmbedding(TORCH)
    positions.load(table)
    torch.testing.assert_close(positions.add_to(x, torch.tensor([4, 0])), x + table[[4, 0]])
    with pytest.raises(IndexError, match="position 5 asked of a model that learned 5 positions"):
        positions.add_to(x, torch.tensor([5, 0]))


def test_plain_mlp() -> None:
    up, bias, down = randn(7, 4), randn(7, seed=1), randn(4, 7, seed=2)
    x, residual = randn(3, 4, seed=3), randn(3, 4, seed=4)
    mlp = PlainMLP(TORCH, "gelu", None)
    mlp.up.load(up, bias)
    mlp.down.projection.load(down)
    torch.testing.assert_close(mlp(x, residual), residual + F.gelu(x @ up.T + bias) @ down.T)


def test_gated_mlp() -> None:
    gate, up, down = randn(7, 4), randn(7, 4, seed=1), randn(4, 7, seed=2)
    x, residual = randn(3, 4, seed=3), randn(3, 4, seed=4)
    mlp = GatedMLP(TORCH, "silu", None)
    mlp.gate_up.load(torch.cat((gate, up)))
    mlp.down.projection.load(down)
    torch.testing.assert_close(mlp(x, residual), residual + (F.silu(x @ gate.T) * (x @ up.T)) @ down.T)
