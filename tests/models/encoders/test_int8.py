"""Encoders in int8: checkpoints that store integers compute with them, others are rounded; only when they are asked to."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headway.errors import NotBuiltError
from headway.kernels.integer_reference import IntegerLinear, reference_integers
from headway.kernels.packed_batch import pack
from headway.kernels.torch_backend import TORCH
from headway.models.encoders.load import load_encoder
from headway.models.encoders.native_encoder import NativeEncoder
from tests.models.encoders.packed_encoders import packed_encoder
from tests.models.encoders.rows import part, random_rows
from tests.models.encoders.test_packed import SMALL
from tests.models.encoders.tiny_encoders import MakeEncoder

INTEGERS = replace(TORCH, integers=reference_integers())
ROWS = random_rows()


@pytest.mark.parametrize("form", ["awq", "int8", "llm.int8", "gptq"])
def test_packed_matrices_stay_what_they_are(make: MakeEncoder, form: str, tmp_path: Path) -> None:
    """gptq: inputs out of order, whose matrices have to be dequantized; those that are not packed become integers."""
    oracle = packed_encoder(make("bert"), SMALL[form], tmp_path)
    encoder = load_encoder(oracle.folder, torch.float32, INTEGERS, int8=True)
    assert isinstance(encoder, NativeEncoder)
    found = encoder.layers[0].attention.qkv.packed
    assert isinstance(found, IntegerLinear) == (form != "gptq")
    batch = pack(ROWS)
    last = encoder.encode(batch).last
    assert max((part(last, batch, number) - oracle.states(row)[-1]).abs().max() for number, row in enumerate(ROWS)) <= (0.02 if form == "gptq" else 1e-4)


def test_nothing_is_rounded_unasked(make: MakeEncoder, tmp_path: Path) -> None:
    oracle = packed_encoder(make("bert"), SMALL["int8"], tmp_path)
    encoder = load_encoder(oracle.folder, torch.float32, INTEGERS)
    assert isinstance(encoder, NativeEncoder)
    assert not isinstance(encoder.layers[0].attention.qkv.packed, IntegerLinear)


def test_without_integer_kernels_the_matrices_are_rounded(make: MakeEncoder, caplog: pytest.LogCaptureFixture) -> None:
    batch = pack(ROWS)
    with caplog.at_level(logging.WARNING):
        rounded = load_encoder(make("bert").folder, torch.float32, TORCH, int8=True).encode(batch).last
    assert "rounded to what int8_32 holds" in caplog.text
    kept = load_encoder(make("bert").folder, torch.float32, INTEGERS, int8=True).encode(batch).last
    torch.testing.assert_close(rounded, kept, atol=1e-4, rtol=1e-4)
    assert (rounded - load_encoder(make("bert").folder, torch.float32, TORCH).encode(batch).last).abs().max() > 1e-3


def test_encoders_of_transformers_are_refused(make: MakeEncoder) -> None:
    with pytest.raises(NotBuiltError, match="int8"):
        load_encoder(make("electra").folder, torch.float32, int8=True)
