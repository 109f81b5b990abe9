"""Launch files judged before a start, with the doctor's own rules."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headway.cli.doctor_config import judged_flags
from headway.doctor.configured import Configured, examine_config
from headway.errors import DoctorError
from tests.e2e.tiny_model import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


def judged(folder: Path, text: str, here: bool | None = None) -> Configured:
    (folder / "start.sh").write_text(text)
    return examine_config(folder / "start.sh", here, judged_flags)


def answers(found: Configured) -> list[str]:
    return [finding.rule.id for finding in found.examined.report.findings if finding.is_answer]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_start_that_would_go_well(tmp_path: Path, model: Path) -> None:
    found = judged(tmp_path, f"headway serve {model} --port {free_port()}\n")
    assert answers(found) == []
    assert found.flags.refused == ""


def test_a_cache_for_less_than_one_sequence(tmp_path: Path, model: Path) -> None:
    found = judged(tmp_path, f"headway serve {model} --port {free_port()} --kv-cache-memory-bytes 40000\n")
    assert answers(found)[0] == "O2"
    assert any("--max-model-len 128" in (fix.command or "") for fix in found.examined.report.findings[0].found.fixes)


def test_a_context_beyond_the_models(tmp_path: Path, model: Path) -> None:
    assert answers(judged(tmp_path, f"headway serve {model} --port {free_port()} --max-model-len 99999\n"))[0] == "L16"


def test_a_port_that_is_taken(tmp_path: Path, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        line = f"headway serve {model} --port {owner.getsockname()[1]}\n"
        arguments = line.split(" ", 2)[2].strip().replace(" ", ", ")
        assert answers(judged(tmp_path, line))[0] == "N18"
        assert answers(judged(tmp_path, line, here=False)) == []
        assert answers(judged(tmp_path, f"kind: Pod\nspec: {{containers: [{{image: headway, args: [{arguments}]}}]}}")) == [], "meant for a cluster"


def test_flags_that_nobody_knows(tmp_path: Path) -> None:
    found = judged(tmp_path, "headway serve m --max-modl-len 4096\n")
    assert "Did you mean --max-model-len?" in found.flags.refused
    assert "--max-modl-len" in found.examined.report.verdict.zh


def test_old_spellings_and_variables(tmp_path: Path) -> None:
    found = judged(tmp_path, "VLLM_ATTENTION_BACKND=x vllm serve org/m --speculative-model d --tensor-parallel-size 2 --max-modl-len 5\n", here=False)
    assert found.flags.refused == "", "vLLM may know what Headway does not"
    assert found.flags.remarks[0] == "--speculative-model was renamed to --spec-model"
    assert "--max-modl-len" in found.flags.remarks[1]
    assert "VLLM_ATTENTION_BACKND" in found.variables[0]


def test_flags_of_other_programs_are_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, "llama-server -m x.gguf -ngl 99 --jinja\n", here=False)
    assert found.flags.remarks == ()


def test_a_routers_configuration(tmp_path: Path) -> None:
    found = judged(tmp_path, "version: v0.3\nrouting: {decisions: 7}\n")
    assert found.examined.case.context.text("command").startswith("vllm-sr serve")


@pytest.mark.parametrize("name", ["absent", "folder", "binary", "large"])
def test_what_is_no_launch_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    if name == "binary":
        path.write_bytes(bytes(range(256)) * 8)
    if name == "large":
        with path.open("wb") as stream:
            stream.truncate(5 << 20)
    with pytest.raises(DoctorError) as caught:
        examine_config(path, None, judged_flags)
    assert caught.value.reason == "launch_unknown"
