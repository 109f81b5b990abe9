"""Versions of the packages that matter, read from their metadata; nothing is imported."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("headway", "vllm", "torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "triton", "flash_attn", "xformers",
                    "flashinfer-python", "nvidia-nccl-cu12", "ray", "compressed-tensors", "gptqmodel", "sglang", "tensorrt_llm", "numpy", "vllm-sr")  # fmt: skip


def versions_part(interpreter: Path | None = None) -> dict[str, str]:
    """Package -> version of this environment, or of that of another `interpreter` (a virtual environment's python)."""
    folders = None if interpreter is None else [str(folder) for folder in _site_packages(interpreter)]
    found: dict[str, str] = {}
    if folders is None:
        found["python"] = platform.python_version()
    installed = metadata.distributions() if folders is None else metadata.distributions(path=folders)
    wanted = {_plain(name): name for name in _PACKAGES}
    for package in installed:
        name = package.metadata["Name"]
        if name and _plain(name) in wanted:
            found.setdefault(wanted[_plain(name)], package.version)
    return dict(sorted(found.items()))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _site_packages(interpreter: Path) -> list[Path]:
    return sorted(interpreter.parent.parent.glob("lib/python3*/*-packages"))
