"""Formats of weight files (`--load-format`): which are read, and why the others are not."""

from __future__ import annotations

from typing import Final

from headway.errors import ConfigError, NotBuiltError

BUILT: Final = ("auto", "safetensors", "gguf", "dummy")
_PICKLES: Final = ("pt", "npcache")
_NOT_BUILT: Final = ("sharded_state", "tensorizer", "runai_streamer", "fastsafetensors", "bitsandbytes", "mistral")


def check_load_format(name: str) -> None:
    """Raises ConfigError (`unsafe_weights` for pickles), NotBuiltError.

    Pickles are refused also in torch's restricted reader (`weights_only`): it has let code through before
    (CVE-2025-32434), and every model that is worth serving exists as safetensors or converts to it in one call.
    """
    if name in BUILT:
        return
    if name in _PICKLES:
        raise ConfigError(
            f"--load-format {name} is refused: .pt and .bin files are pickles, which can run code when they are read",
            reason="unsafe_weights", param="load_format",
            fix="Convert the checkpoint where you trust it: AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER).",
        )  # fmt: skip
    if name in _NOT_BUILT:
        raise NotBuiltError(f"--load-format {name} is not built yet", param="load_format", fix=f"Use one of {', '.join(BUILT)}.")
    known = (*BUILT, *_PICKLES, *_NOT_BUILT)
    raise ConfigError(f"load_format must be one of {', '.join(known)}, got {name!r:.60}", param="load_format")
