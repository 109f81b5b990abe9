"""Folders that are no adapters of this model are refused with the reason, and nothing else is read of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.errors import AdapterError
from headway.models.architectures.llama import LLAMA
from headway.models.lora.adapter_folder import WEIGHTS, AdapterWeights, read_adapter
from headway.models.lora.adapter_settings import CONFIG
from headway.models.lora.targets import Targets, adapter_targets
from tests.models.lora.peft_adapters import make_adapter
from tests.models.tiny_models import TinyModel

Change = Callable[[Path], None]
Q = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def targets(tiny: Callable[[str], TinyModel]) -> Targets:
    return adapter_targets("LlamaForCausalLM", LLAMA.configure(tiny("smollm").oracle.config.to_dict(), 128))


@pytest.fixture(scope="module")
def good(tiny: Callable[[str], TinyModel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_adapter(tiny("smollm").oracle, tmp_path_factory.mktemp("good"), seed=1).folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "adapter"))


def read(folder: Path, targets: Targets) -> AdapterWeights:
    return read_adapter(str(folder), targets, 16, torch.float32)


def config(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def tensors(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Change:
    def change(folder: Path) -> None:
        found = load_file(folder / WEIGHTS)
        edit(found)
        save_file(found, folder / WEIGHTS)

    return change


def renamed(old: str, new: str) -> Change:
    return tensors(lambda t: t.update({name.replace(old, new): t.pop(name) for name in list(t) if old in name}))


def filled(value: float) -> Change:
    return tensors(lambda t: t[f"{Q}.lora_B.weight"].fill_(value))


def only_pickled(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "adapter_model.bin")


def cut_short(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-100])


def oversized(folder: Path) -> None:
    with (folder / WEIGHTS).open("ab") as file:
        file.truncate(1 << 30)


WRONG: list[tuple[str, Change, str, str]] = [
    ("no folder", shutil.rmtree, "adapter_not_found", "No adapter found for"),
    ("no config", lambda f: (f / CONFIG).unlink(), "adapter_not_found", CONFIG),
    ("no weights", lambda f: (f / WEIGHTS).unlink(), "adapter_not_found", WEIGHTS),
    ("no JSON", lambda f: (f / CONFIG).write_text("{"), "invalid_json", CONFIG),
    ("long config", lambda f: (f / CONFIG).write_text(" " * (1 << 21)), "adapter_config", "2097152 bytes"),
    ("pickle", only_pickled, "adapter_pickled", "save it again"),
    ("cut short", cut_short, "truncated", "100 bytes are missing"),
    ("too large", oversized, "adapter_too_large", "1073741824 bytes"),
    ("rank", config(r=64), "adapter_rank", "LoRA rank 64 is greater than max_lora_rank 16"),
    ("rank of a pattern", config(rank_pattern={"q_proj": 64}), "adapter_rank", "LoRA rank 64"),
    ("rank of no number", config(r="4"), "adapter_config", "whole number above 0 as r"),
    ("alpha", config(lora_alpha=None), "adapter_config", "lora_alpha"),
    ("slow pattern", config(alpha_pattern={"(a+)+": 1}), "adapter_config", "alpha_pattern"),
    ("kind", config(peft_type="IA3"), "adapter_feature", "IA3"),
    ("DoRA", config(use_dora=True), "adapter_feature", "DoRA"),
    ("bias", config(bias="all"), "adapter_feature", "bias"),
    ("whole modules", config(modules_to_save=["lm_head"]), "adapter_feature", "modules_to_save"),
    ("PiSSA", config(init_lora_weights="pissa_niter_4"), "adapter_feature", "pissa_niter_4"),
    ("unknown setting", config(use_sorcery=True), "adapter_feature", "use_sorcery"),
    ("magnitudes", renamed("q_proj.lora_A.weight", "q_proj.lora_magnitude_vector"), "adapter_feature", "DoRA"),
    ("head", renamed("model.layers.0.self_attn.q_proj", "lm_head"), "adapter_target", "lm_head; adapters of embeddings"),
    ("unknown module", renamed("q_proj", "c_attn"), "adapter_target", "c_attn and|c_attn.*does not have|does not have: .*c_attn"),
    ("half of it", tensors(lambda t: t.pop(f"{Q}.lora_B.weight")), "adapter_tensor", "lora_A and no lora_B"),
    ("another tensor", renamed("q_proj.lora_A.weight", "q_proj.weight"), "adapter_tensor", "no part of a LoRA adapter"),
    ("nothing", tensors(lambda t: t.clear()), "adapter_tensor", "no tensors"),
    ("shape", tensors(lambda t: t.update({f"{Q}.lora_A.weight": torch.zeros(4, 7)})), "adapter_shape", r"\[4, 7\], \[4, 64\] is expected"),
    ("rank of the tensors", config(r=3), "adapter_shape", "for rank 3"),
    ("integers", tensors(lambda t: t.update({f"{Q}.lora_A.weight": torch.zeros(4, 64, dtype=torch.int8)})), "adapter_tensor", "I8"),
    ("NaN", filled(float("nan")), "adapter_not_finite", "infinite"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "reason", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_what_is_wrong_is_named(folder: Path, targets: Targets, change: Change, reason: str, said: str) -> None:
    change(folder)
    with pytest.raises(AdapterError, match=said) as raised:
        read(folder, targets)
    assert raised.value.reason == reason


@pytest.mark.parametrize("path", ["", "\0", "~nobody-of-this-name/x", "x" * 5_000, "/dev/null"])
def test_paths_that_no_folder_has(targets: Targets, path: str) -> None:
    with pytest.raises(AdapterError, match="No adapter found"):
        read_adapter(path, targets, 16, torch.float32)


def test_what_changes_an_answer_changes_the_digest(folder: Path, targets: Targets) -> None:
    """And only that: prefix caches are keyed by it."""
    before = read(folder, targets)
    assert before.rank == 4
    # A and B of queries, keys and values (three matrices, 128 columns), output, gate and up (two, 192), down; each matrix of rank 4, in 3 layers.
    assert before.nbytes == 4 * 3 * 4 * (3 * (64 + 128) + (64 + 64) + 2 * (64 + 192) + (96 + 64))
    assert targets.held_numbers(4) * 4 == before.nbytes
    config(lora_dropout=0.5, base_model_name_or_path="elsewhere")(folder)
    assert read(folder, targets).digest == before.digest
    config(lora_alpha=8)(folder)
    scaled = read(folder, targets).digest
    tensors(lambda t: t[f"{Q}.lora_A.weight"].mul_(1.001))(folder)
    assert len({before.digest, scaled, read(folder, targets).digest, read_adapter(str(folder), targets, 16, torch.bfloat16).digest}) == 4
