"""SmolLM2 135M out of its GGUF file into a folder that vLLM reads: transformers' own reading of the file, in float32.

python -m tests.runtime.decisions.label_logits.write_smollm2 FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from transformers import AutoTokenizer

from headway.artifacts.resolve import resolve
from tests.models.gguf_oracle import gguf_oracle


def main(folder: Path) -> None:
    path = resolve("smollm2-135m-instruct")
    model = gguf_oracle(path)
    model.config.architectures = ["LlamaForCausalLM"]
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
