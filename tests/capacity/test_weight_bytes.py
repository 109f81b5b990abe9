from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.artifacts.inspect import inspect
from headway.capacity.byte_text import byte_text
from headway.capacity.roofline import decode_step
from headway.capacity.weight_bytes import decode_weight_bytes, loaded_weight_bytes
from tests.artifacts.model_files import write_folder, write_gguf


def test_loaded_bytes_count_parameters_not_file_bytes(tmp_path: Path) -> None:
    card = inspect(str(write_folder(tmp_path)))
    # The tied embedding is there twice: its head keeps a packed copy.
    assert loaded_weight_bytes(card, 2) == 2 * (2 * 50 * 32 + 2 * 32 * 32 + 32)
    assert loaded_weight_bytes(card, 2) != card.weight_bytes


def test_a_tied_embedding_is_read_and_an_untied_one_is_not(tmp_path: Path) -> None:
    tied = inspect(str(write_gguf(tmp_path / "tied.gguf")))
    assert decode_weight_bytes(tied, 2) == 2 * (50 * 32 + 32)
    layer = {"blk.0.attn_output.weight": np.zeros((32, 32), np.float32)}
    also_tied = inspect(str(write_gguf(tmp_path / "also.gguf", **layer)))
    assert decode_weight_bytes(also_tied, 2) == 2 * (50 * 32 + 32 + 32 * 32)
    untied = inspect(str(write_gguf(tmp_path / "untied.gguf", **{"output.weight": np.zeros((50, 32), np.float32)})))
    assert decode_weight_bytes(untied, 2) == 2 * (50 * 32 + 32)


def test_decode_step_reads_weights_once_and_every_context() -> None:
    step = decode_step(1_000_000, 100, [10, 20, 30])
    assert step.nbytes == 1_006_000
    assert step.seconds(1e6) == pytest.approx(1.006)
    assert step.tokens_per_second(1e6) == pytest.approx(3 / 1.006)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (2 << 30, "2.00 GiB"),
        (-1536, "-1.50 KiB"),
        (1 << 60, "1024.00 PiB"),
    ],
)
def test_byte_text(count: int, text: str) -> None:
    assert byte_text(count) == text
