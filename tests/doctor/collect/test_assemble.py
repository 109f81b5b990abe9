"""Parts become one context, and the file that is written reads as the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headway.doctor.collect.assemble import (
    as_context,
    as_yaml,
    context_of_caller,
    context_of_launch,
    context_of_machine,
    joined,
    with_probes,
)
from headway.doctor.collect.launch_files import launched_by
from headway.doctor.collect.network import Address
from headway.doctor.collect.transcript import Transcript
from headway.doctor.evidence.context import read_context


def test_joining_keeps_members_of_both() -> None:
    assert joined({"host": {"a": 1, "b": 1}, "x": 1}, {"host": {"b": 2}}, {"x": [3]}) == {"host": {"a": 1, "b": 2}, "x": [3]}


def test_what_is_written_reads_as_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_TESTONLYabcdefghijkl")
    context = with_probes(context_of_machine(), Transcript(["resolve h: 1.2.3.4"])) | {"said": "慢", "metrics": [{"t": 0, "x": float("nan")}]}
    path = tmp_path / "context.yaml"
    path.write_text(text := as_yaml(context), "utf-8")
    assert "TESTONLY" not in text
    assert read_context(path) == as_context(context)
    assert read_context(path).get("host.probes.0") == "resolve h: 1.2.3.4"
    assert read_context(path).get("metrics.0.x") is None


def test_versions_of_another_interpreter() -> None:
    assert "python" not in context_of_machine(interpreter=Path(sys.executable))["versions"]


def test_a_script_has_the_variables_of_its_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    context = context_of_launch(launched_by("VLLM_NOT_THERE=1 vllm serve org/m"), here=True)
    assert context["env"]["OMP_NUM_THREADS"] == "7"
    assert context["env"]["VLLM_NOT_THERE"] == "1"
    assert "VLLM_NOT_THERE" in context["env_remarks"][0]
    assert context["versions"]
    assert context["model"]["id"] == "org/m"


def test_a_container_has_only_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    context = context_of_launch(launched_by("docker run --memory 8g vllm/vllm-openai --model org/m"), here=True)
    assert "env" not in context
    assert "versions" not in context
    assert context["host"]["cgroup"] == {"memory_max_gib": 8.0}
    assert context["host"]["ram_gib"] > 0
    assert context["model"]["id"] == "org/m"


def test_elsewhere_nothing_of_this_machine_counts() -> None:
    context = context_of_launch(launched_by("vllm serve org/m"), here=False)
    assert set(context) == {"command", "model"}


def test_a_caller_says_who_listens_only_about_its_own_addresses() -> None:
    assert "listeners" in context_of_caller(Address("127.0.0.1", 1))["host"]
    assert set(context_of_caller(Address("192.0.2.77", 1))["host"]) == {"in_container", "interfaces"}
