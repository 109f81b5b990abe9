"""A manifest or a batch script that names its card is judged by the plan's arithmetic, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli.doctor_config import judged_flags
from headway.doctor.configured import Configured, examine_config
from headway.doctor.planned_on_card import lines_on_card, named_cards
from headway.errors import ConfigError

_POD = """\
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      nodeSelector: {{{label}: {card}}}
      containers:
      - image: vllm/vllm-openai:v0.32.0
        args: [--model, {model}, {flags}]
        resources: {{limits: {{nvidia.com/gpu: {count}}}}}
"""
_AFFINITY = """\
        - key: nvidia.com/gpu.product
          operator: In
          values:
          - NVIDIA-A100-SXM4-80GB
"""


def judged(folder: Path, model: str, flags: str, card: str = "nvidia-l4", count: int = 1) -> Configured:
    (folder / "pod.yaml").write_text(_POD.format(label="cloud.google.com/gke-accelerator", card=card, model=model, flags=flags, count=count))
    return examine_config(folder / "pod.yaml", None, judged_flags)


def answers(found: Configured) -> list[str]:
    return [finding.rule.id for finding in found.examined.report.findings if finding.is_answer]


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}", "l4", 1),
        ("nodeSelector:\n  nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3\nresources:\n  limits:\n    nvidia.com/gpu: 4\n", "h100-sxm", 4),
        (_AFFINITY, "a100-80gb", 1),
        ("#SBATCH --gres=gpu:a100:2\nvllm serve m\n", "a100-80gb", 2),
        ("#SBATCH --gpus-per-node=h200:8\n", "h200", 8),
    ],
)
def test_how_files_name_a_card(text: str, name: str, count: int) -> None:
    cards = named_cards(text)
    assert cards is not None
    assert (cards.device.name.partition("-")[0], cards.count) == (name.partition("-")[0], count)


def test_files_that_name_none() -> None:
    assert named_cards("resources: {limits: {nvidia.com/gpu: 2}}\nvllm serve m --device cuda\n") is None
    with pytest.raises(ConfigError):
        named_cards("nodeSelector: {nvidia.com/gpu.product: Acme-9000}")


def test_a_context_that_the_card_does_not_hold(tmp_path: Path) -> None:
    """8 B parameters take 15.0 GiB of 24 GB x 0.92; 131,072 tokens x 128 KiB are 16 GiB."""
    found = judged(tmp_path, "meta-llama/Llama-3.1-8B-Instruct", '--max-model-len, "131072"')
    assert answers(found)[0] == "O2"
    top = found.examined.report.findings[0].found
    assert "16.00 GiB" in top.cause.en
    assert all("planned for NVIDIA L4" in quote.text for quote in top.evidence)
    length = int((top.fixes[0].command or "").rpartition(" ")[2])
    assert answers(judged(tmp_path, "meta-llama/Llama-3.1-8B-Instruct", f'--max-model-len, "{length}"')) == []


def test_weights_that_the_card_does_not_hold(tmp_path: Path) -> None:
    found = judged(tmp_path, "meta-llama/Llama-3.3-70B-Instruct", '--max-model-len, "4096"', "nvidia-a100-80gb")
    assert answers(found)[0] == "O1"
    assert answers(judged(tmp_path, "meta-llama/Llama-3.3-70B-Instruct", '--tensor-parallel-size, "4", --max-model-len, "4096"', "nvidia-a100-80gb", 4)) == []


def test_a_card_that_nobody_knows_is_said(tmp_path: Path) -> None:
    found = judged(tmp_path, "meta-llama/Llama-3.1-8B-Instruct", "--seed, 1", "acme-9000")
    assert any("acme-9000" in remark for remark in found.flags.remarks)
    assert answers(found) == []


@pytest.mark.parametrize("flags", [{"model": "org/unknown"}, {}, {"max_model_len": "long"}, {"pipeline_parallel_size": "2"}, {"tensor_parallel_size": "3"}])
def test_what_cannot_be_planned_gives_no_line(flags: dict[str, str]) -> None:
    cards = named_cards("#SBATCH --gres=gpu:l4:1")
    assert cards is not None
    assert lines_on_card({"model": "meta-llama/Llama-3.3-70B-Instruct", **flags} if flags else {}, cards) == []
