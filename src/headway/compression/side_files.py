"""What belongs to a checkpoint beside its weights: configuration, tokenizer, chat template, generation defaults, licence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.folder_contents import TEMPLATE_FILES, TOKENIZER_FILE_SETS
from headway.artifacts.tokenizer import Tokenizer

_COPIED: Final = frozenset({
    *(name for names in TOKENIZER_FILE_SETS for name in names), *TEMPLATE_FILES, "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "generation_config.json",
})  # fmt: skip
_TEXTS: Final = ("licen", "notice", "use_policy")


def write_side_files(card: ModelCard, tokenizer: Tokenizer, dtype: str, claim: Mapping[str, Any], folder: Path) -> None:
    """`dtype` is that of the dense tensors, in words of torch; `claim` the section quantization_config. Raises OSError."""
    dropped = ("quantization_config", "compression_config", "auto_map", "torch_dtype", "dtype")
    config = {name: value for name, value in card.config.items() if name not in dropped}
    _write(folder / "config.json", {**config, "torch_dtype": dtype, "quantization_config": claim})
    if card.format == "gguf":
        tokenizer.hf().save_pretrained(str(folder))
    else:
        for source in sorted(card.path.iterdir()):
            if source.is_file() and (source.name in _COPIED or source.name.lower().startswith(_TEXTS)):
                shutil.copyfile(source, folder / source.name)
    if card.generation_config and not (folder / "generation_config.json").exists():
        _write(folder / "generation_config.json", card.generation_config)


def write_index(folder: Path, places: Mapping[str, str], total: int) -> None:
    """`places`: tensor -> file. `total` bytes of all tensors."""
    _write(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))})


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
