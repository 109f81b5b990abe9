"""Which files of a hub repository a model needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from headway.errors import ArtifactError

# Files beside the weights; only the top folder is looked at, except for sentence-transformers modules.
SIDE_PATTERNS: Final = ("*.json", "*.jinja", "tokenizer.model*", "*.tiktoken", "spiece.model", "sentencepiece.bpe.model",
                        "merges.txt", "vocab.txt", "vocab", "README.md", "LICENSE*", "[0-9]_*/config.json")  # fmt: skip
WEIGHT_INDEX: Final = "model.safetensors.index.json"
_UNSAFE: Final = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")
MAX_SIDE_BYTES: Final = 256 << 20
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """`side` is fetched before `weights`, so that complete weights mean a complete model."""

    side: tuple[str, ...]
    weights: tuple[str, ...]


def side_files(sizes: Mapping[str, int | None]) -> tuple[str, ...]:
    """The small files beside the weights: configuration, tokenizer, templates, licence."""
    side = [
        name
        for name in sizes
        if any(fnmatchcase(name, pattern) for pattern in SIDE_PATTERNS) and (sizes[name] or 0) <= MAX_SIDE_BYTES
    ]
    return tuple(sorted(name for name in side if "/" not in name or fnmatchcase(name, "[0-9]_*/config.json")))


def wanted_files(repo: str, sizes: Mapping[str, int | None], variant: str | None) -> WantedFiles:
    """Choose from the files of a repository (name -> size in bytes, or None when the hub does not say).

    Raises ArtifactError: `unsafe_weights`, `no_weights`, `ambiguous_model`.
    """
    side = side_files(sizes)
    top = [name for name in sizes if "/" not in name]
    safetensors = sorted(name for name in top if name.endswith(".safetensors"))
    regular = [name for name in safetensors if not name.startswith("consolidated")] or safetensors
    ggufs = [name for name in top if name.endswith(".gguf")]
    if regular and variant is None:
        return WantedFiles(side, tuple(regular))
    if ggufs:
        return WantedFiles(side, tuple(_one_model(repo, ggufs, variant)))
    unsafe = sorted(name for name in top if name.endswith(_UNSAFE))
    if unsafe:
        raise ArtifactError(
            f"{repo} has its weights only in a format that can run code when it is read: {', '.join(unsafe[:5])}",
            reason="unsafe_weights",
            param="model",
            fix="Name a repository or revision with .safetensors (many have a `refs/pr/N` with them).",
        )
    raise ArtifactError(
        f"{repo} has no *.safetensors and no *.gguf in its top folder", reason="no_weights", param="model"
    )


def gguf_matching(names: Sequence[str], variant: str | None) -> list[str]:
    """GGUF files, projector files left out, whose name contains `variant` as a whole word, letter case aside."""
    models = sorted(name for name in names if "mmproj" not in name.lower())
    if variant is None:
        return models
    word = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(variant)}(?![A-Za-z0-9_])", re.IGNORECASE)
    return [name for name in models if word.search(name)]


def one_gguf_model(names: Sequence[str], variant: str | None) -> list[str] | None:
    """The files of the one model that matches, or None when there are none or several."""
    matching = gguf_matching(names, variant)
    stems = {_SHARD.sub("", name) for name in matching}
    return matching if len(stems) == 1 else None


def _one_model(repo: str, names: Sequence[str], variant: str | None) -> list[str]:
    chosen = one_gguf_model(names, variant)
    if chosen is not None:
        return chosen
    available = ", ".join(gguf_matching(names, None)[:12])
    found = "no GGUF file" if variant is not None and not gguf_matching(names, variant) else "several GGUF files"
    raise ArtifactError(
        f"{repo} has {found}{f' for {variant}' if variant else ''}: {available}",
        reason="ambiguous_model",
        param="model",
        fix=f"Pick one by its quantization, as in {repo}:Q4_K_M.",
    )
