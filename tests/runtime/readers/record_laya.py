"""Asks the package `laya` (PyPI) the cases of `laya_cases.py`, about the package that `vllm-srun fixture` writes.

    vllm-srun fixture FOLDER/laya --family laya --variant laya --seed 11      (and: --variant julia)
    pip install laya==0.4.15 && python record_laya.py FOLDER > recorded/laya.json

The package rounds to four digits; here it is kept from it. It does not know Julia's way to write options, so only the
variant `laya` is asked.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import laya
import laya.agent
import torch
import transformers
from laya_cases import CASES, CUT, MANY

laya.agent.round = lambda value, digits=0: value  # type: ignore[attr-defined]


def main(folder: Path) -> None:
    agent = laya.load(str(folder / "laya"), device="cpu")
    answers = [agent.system_one(state, {"q": question})["answers"]["q"] for state, question in [*CASES, *CUT, MANY]]
    digests = {name: hashlib.sha256((folder / "laya" / name).read_bytes()).hexdigest() for name in ("model.safetensors", "tokenizer/tokenizer.json")}
    versions = {"laya": laya.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
    json.dump({"made_with": versions, "fixture": digests, "answers": answers}, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
