"""Rows of random tokens, and the parts of a batch that belong to them."""

from __future__ import annotations

import random

import torch

from headway.kernels.packed_batch import PackedBatch

# Repeated lengths, a single token, and rows beyond every reach, bucket and window of the tiny models.
LENGTHS = (7, 1, 20, 7, 50, 3, 41, 20)


def random_rows(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> list[list[int]]:
    chance = random.Random(seed)
    return [[chance.randrange(5, 120) for _ in range(length)] for length in lengths]


def part(states: torch.Tensor, batch: PackedBatch, number: int) -> torch.Tensor:
    return states[batch.starts[number] : batch.starts[number + 1]]

