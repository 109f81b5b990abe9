"""Variables that matter, what is said about odd ones, and versions of another interpreter."""

from __future__ import annotations

from pathlib import Path

from headway.doctor.collect.environment import environment_part, process_environment, remarks
from headway.doctor.collect.versions import versions_part


def test_only_variables_that_matter_and_no_secret() -> None:
    part = environment_part({"HF_TOKEN": "hf_TESTONLYabcdefghijkl", "VLLM_API_KEY": "s3cret", "CUDA_VISIBLE_DEVICES": "0,1", "HOME": "/root", "RANK": "0"})
    assert part == {"CUDA_VISIBLE_DEVICES": "0,1", "HF_TOKEN": "[masked]", "RANK": "0", "VLLM_API_KEY": "[masked]"}


def test_variables_that_nobody_reads() -> None:
    said = remarks({"VLLM_ATTENTION_BACKND": "x", "NCCL_TIMEOUT": "1800", "NCCL_DEBUG": "INFO", "VLLM_SERVICE_HOST": "10.0.0.1"})
    assert len(said) == 2
    assert "VLLM_ATTENTION_BACKEND" in said[0]
    assert "NCCL_TIMEOUT" in said[1]
    assert "1800" not in "".join(said)


def test_a_process_that_is_not_there_has_no_environment() -> None:
    assert process_environment(2**22 + 1) == {}


def test_versions_here() -> None:
    part = versions_part()
    assert part["headway"]
    assert part["python"].count(".") == 2


def test_versions_of_another_environment(tmp_path: Path) -> None:
    for folder, name, version in (("lib", "vllm", "0.11.0"), ("lib", "Flash_Attn", "2.8.1"), ("lib", "unrelated", "1.0")):
        info = tmp_path / folder / "python3.12" / "site-packages" / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    assert versions_part(tmp_path / "bin" / "python3") == {"flash_attn": "2.8.1", "vllm": "0.11.0"}
