"""Changes to copies of packages, for tests of what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

Change = Callable[[Path], Any]


def spoiled(folder: Path, tmp_path: Path, change: Change) -> Path:
    """A copy of `folder` after `change`."""
    copy = tmp_path / "spoiled"
    shutil.copytree(folder, copy)
    change(copy)
    return copy


def changed_json(name: str, **changes: Any) -> Change:
    def change(copy: Path) -> None:
        path = copy / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def changed_tensors(name: str, edit: Callable[[dict[str, torch.Tensor]], Any]) -> Change:
    def change(copy: Path) -> None:
        tensors = load_file(copy / name)
        edit(tensors)
        save_file(tensors, copy / name)

    return change
