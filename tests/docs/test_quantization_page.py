"""docs/quantization.md, the section on checkpoints that are read: every format and every need is there, and nothing that is not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from safetensors.torch import save_file

from headway.artifacts.quantization_claim import METHOD_NAMES, SIDE_FILES
from headway.artifacts.safetensors_header import read_safetensors_header
from headway.quantization.dense import DENSE_DTYPES
from headway.quantization.gguf.unpackers import UNPACKERS
from headway.quantization.logical_card import FORMATS, logical_tensors
from headway.quantization.stored_format import stored_format
from headway.runtime.loading.capabilities import sentence
from tests.docs.pages import ROOT
from tests.quantization.packers import CASES

SECTION = (ROOT / "docs" / "quantization.md").read_text().partition("## Which checkpoints are read")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("|") and "---" not in line]
FORMAT_ROWS = [row for row in ROWS if len(row) == 5][1:]


def test_formats_and_what_they_need_of_a_device(tmp_path: Path) -> None:
    """The sample of each format is read; what it needs is the last cell of one of the rows of its method."""
    found = set()
    for case in CASES:
        stored, _ = case.pack(np.random.default_rng(1), 128, 128)
        save_file({f"m.{ending}": tensor.contiguous() for ending, tensor in stored.items()}, tmp_path / "m.safetensors")
        tensors = logical_tensors(read_safetensors_header(tmp_path / "m.safetensors").tensors, {"source": "config.json", **case.claim}, case.name)
        needs = stored_format(tensors.values()).needs
        found.add((METHOD_NAMES[case.claim["quant_method"]], f"needs `{needs[0]}`" if needs else "yes"))
    listed = {(re.findall(r"`([\w-]+)`", row[0])[0], row[4]) for row in FORMAT_ROWS if row[0] != "GGUF"}
    assert listed == found
    assert {method for method, _ in listed} == set(FORMATS)
    assert {row[3] for row in FORMAT_ROWS} == {"yes"}


def test_types_of_gguf() -> None:
    (row,) = [row for row in FORMAT_ROWS if row[0] == "GGUF"]
    assert set(row[1].split(", ")) == {*DENSE_DTYPES, *UNPACKERS}


def test_sentences_and_files() -> None:
    for need, _, message in [row for row in ROWS if len(row) == 3][1:]:
        assert message.strip("`") in sentence(need.strip("`"))
    assert all(f"`{name}`" in SECTION for name in SIDE_FILES)
