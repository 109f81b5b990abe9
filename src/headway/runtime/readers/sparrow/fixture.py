"""A tiny `.sparrow` package with random weights."""

from __future__ import annotations

import io
import json
import string
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.runtime.readers.sparrow.number_pairs import NUMBER_FEATURES
from headway.runtime.readers.sparrow.scorer import KINDS, NUMBER_BLOCKS, WORD_BLOCKS

VARIANTS: Final = ("words", "numbers")
_WIDTH: Final = 16
_HIDDEN: Final = 12
_QUANTIZED: Final = ("emb.weight", "kind.weight", "mlp.0.weight", "mlp.2.weight", "mlp.4.weight", "g.weight")


def write_sparrow(folder: Path, variant: str, seed: int) -> Path:
    """`folder`/fixture-<variant>.sparrow; its vocabulary spells every ASCII text."""
    numbers = variant == "numbers"
    letters = string.ascii_lowercase + string.digits
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *letters, *(f"##{letter}" for letter in letters)]
    config = {
        "arch": "static", "family": "sparrow-decider", "name": f"fixture-{variant}", "kv": numbers, "dim": _WIDTH,
        "hidden": _HIDDEN, "vocab_size": len(words), "max_len": 512,
        "temperature_by_kind": {"choice": 1.25, "noul": 0.75, "score": 0.5},
    }  # fmt: skip
    stored = io.BytesIO()
    np.savez(stored, **_arrays(len(words), numbers, seed))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"fixture-{variant}.sparrow"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (
            ("config.json", json.dumps(config)),
            ("tokenizer.json", json.dumps({"vocab": {word: index for index, word in enumerate(words)}})),
            ("model.npz", stored.getvalue()),
        ):
            archive.writestr(zipfile.ZipInfo(name), content)  # a fixed date, so that equal seeds give equal files
    return path


def _arrays(words: int, numbers: bool, seed: int) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    blocks = WORD_BLOCKS + (NUMBER_BLOCKS if numbers else 0)
    shapes: dict[str, tuple[int, ...]] = {
        "emb.weight": (words, _WIDTH), "kind.weight": (len(KINDS), _WIDTH),
        "mlp.0.weight": (_HIDDEN, blocks * _WIDTH), "mlp.0.bias": (_HIDDEN,),
        "mlp.2.weight": (_HIDDEN, _HIDDEN), "mlp.2.bias": (_HIDDEN,),
        "mlp.4.weight": (1, _HIDDEN), "mlp.4.bias": (1,),
    }  # fmt: skip
    if numbers:
        shapes |= {"g.weight": (_WIDTH, NUMBER_FEATURES), "g.bias": (_WIDTH,), "tau": (1,)}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, shape in shapes.items():
        values = chance.standard_normal(shape).astype(np.float32)
        if name in _QUANTIZED:
            scales = np.abs(values).max(1) / np.float32(127.0)
            arrays[f"{name}.q8"] = np.round(values / scales[:, None]).astype(np.int8)
            arrays[f"{name}.scale"] = scales
        else:
            arrays[name] = values
    return arrays
