"""Small batches run as one program of native kernels, with the same numbers as kernel by kernel."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.native.library import native_library
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_encoder
from headway.models.encoders.native_encoder import NativeEncoder
from tests.models.encoders.rows import LENGTHS, random_rows
from tests.models.encoders.tiny_encoders import MakeEncoder

pytestmark = pytest.mark.skipif(not native_library().sets, reason=native_library().missing or "")
RECORDED = ("bert", "bert-relu", "roberta", "distilbert", "modernbert", "modernbert-biased", "mmbert-32k")


def loaded(make: MakeEncoder, name: str, dtype: torch.dtype = torch.float32) -> NativeEncoder:
    encoder = load_encoder(make(name).folder, dtype)
    assert isinstance(encoder, NativeEncoder)
    encoder.encode(pack([[5]]))  # the first batch records
    return encoder


def kernel_by_kernel(encoder: NativeEncoder, rows: list[list[int]], kinds: list[list[int]] | None = None) -> torch.Tensor:
    recorded, encoder._recorded = encoder._recorded, None
    try:
        return encoder.encode(pack(rows, kinds)).last
    finally:
        encoder._recorded = recorded


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_numbers_are_the_same(make: MakeEncoder, name: str, dtype: torch.dtype) -> None:
    """Batches of all sizes one after the other: nothing of an earlier one is left."""
    encoder = loaded(make, name, dtype)
    assert encoder._recorded is not None
    for lengths in (LENGTHS, (1,), (90 if name == "bert" else 41, 2), (3,) * 64, (5, 4)):
        rows = random_rows(lengths, seed=len(lengths))
        assert torch.equal(encoder.encode(pack(rows), {encoder.num_layers}).exits[encoder.num_layers], kernel_by_kernel(encoder, rows)), lengths


def test_what_an_answer_holds_stays(make: MakeEncoder) -> None:
    encoder = loaded(make, "bert")
    first = encoder.encode(pack(random_rows((9, 4)))).last
    kept = first.clone()
    encoder.encode(pack(random_rows((9, 4), seed=1)))
    assert torch.equal(first, kept)


def test_token_types(make: MakeEncoder) -> None:
    encoder = loaded(make, "bert")
    rows = random_rows((9, 4))
    kinds = [[0] * 5 + [1] * 4, [0, 0, 1, 1]]
    typed = encoder.encode(pack(rows, kinds)).last
    assert torch.equal(typed, kernel_by_kernel(encoder, rows, kinds))
    plain = encoder.encode(pack(rows)).last
    assert not torch.equal(typed, plain)
    assert torch.equal(plain, kernel_by_kernel(encoder, rows))


@pytest.mark.parametrize("lengths", [(8,) * 65, (80,) * 7, (0, 5), ()])
def test_batches_that_do_not_fit_run_kernel_by_kernel(make: MakeEncoder, lengths: tuple[int, ...]) -> None:
    encoder = loaded(make, "bert")
    batch = pack(random_rows(lengths))
    assert encoder._recorded is not None
    assert not encoder._recorded.inputs.fits(batch)
    if lengths:
        assert torch.equal(encoder.encode(batch).last, kernel_by_kernel(encoder, random_rows(lengths)))


@pytest.mark.parametrize("row", [[5, 120], [5] * 91])
def test_what_is_beyond_a_table_is_refused_and_forgotten(make: MakeEncoder, row: list[int]) -> None:
    encoder = loaded(make, "bert")
    with pytest.raises(IndexError):
        encoder.encode(pack([row]))
    good = random_rows((6,))
    assert torch.equal(encoder.encode(pack(good)).last, kernel_by_kernel(encoder, good))


def test_parts_that_are_shared_after_loading(make: MakeEncoder) -> None:
    """The program must not point to what was there before."""
    encoder, other = (load_encoder(make(name).folder, torch.float32) for name in ("bert", "bert-relu"))
    assert isinstance(encoder, NativeEncoder)
    assert isinstance(other, NativeEncoder)
    encoder.embedding = other.embedding
    rows = random_rows((9, 4))
    assert torch.equal(encoder.encode(pack(rows)).last, kernel_by_kernel(encoder, rows))


@pytest.mark.parametrize("name", ["mpnet", "deberta-v2", "deberta-v3"])
def test_what_depends_on_lengths_is_not_recorded(make: MakeEncoder, name: str) -> None:
    assert loaded(make, name)._recorded is None
