"""What was started, from a log's own words and from a command."""

from __future__ import annotations

import pytest

from headway.doctor.case import Case
from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Line
from headway.doctor.evidence.log.scan import read_text
from headway.doctor.facts.launch import Launch, command_flags
from headway.doctor.rules.catalogue import sights


def launch(log: str = "", command: str = "") -> Launch:
    return Case(read_text("log.txt", log.encode(), sights()), Context({"command": command} if command else {})).launch


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("vllm serve org/m --max-model-len 8192 --enforce-eager", {"model": "org/m", "max_model_len": "8192", "enforce_eager": "True"}),
        ("vllm serve org/m --tensor-parallel-size=2 -tp 4", {"model": "org/m", "tensor_parallel_size": "4"}),
        ("python -m vllm.entrypoints.openai.api_server --model m \\\n --dtype half", {"model": "m", "dtype": "half"}),
        ("llama-server -m x.gguf -c 4096 -ngl 20", {"m": "x.gguf", "ctx_size": "4096", "ngl": "20"}),
        ("docker compose up", {}),
        ("it's an unclosed quote --port 8001", {"port": "8001"}),
        ("vllm serve m --rope-scaling '{\"factor\": 2}' --seed -1", {"model": "m", "rope_scaling": '{"factor": 2}', "seed": "-1"}),
    ],
)
def test_flags_of_a_command(command: str, flags: dict[str, str]) -> None:
    assert dict(command_flags(command)) == flags


VLLM = (
    "(APIServer pid=6) INFO 11-29 09:14:03 [api_server.py:9] vLLM API server version 0.32.0\n"
    "(APIServer pid=6) INFO 11-29 09:14:03 [utils.py:264] non-default args: {'model_tag': 'a/b', 'max_model_len': 4096, 'api_key': ['hunter2']}\n"
    "(EngineCore pid=7) INFO 11-29 09:14:05 [core.py:93] Initializing a V1 LLM engine (v0.32.0) with config: model='a/b', dtype=torch.float16,"
    " max_seq_len=4096, quantization=None, tensor_parallel_size=2\n"
)


def test_what_the_engine_says_wins_over_what_was_asked_for() -> None:
    found = launch(VLLM, "vllm serve a/b --tensor-parallel-size 1 --quantization awq")
    assert (found.program, found.version, found.model) == ("vllm", "0.32.0", "a/b")
    assert found.number("tensor_parallel_size") == 2
    assert found.value("quantization") == "None"
    assert found.flags["quantization"].value == "awq"
    assert found.number("max_model_len") == 4096
    fact = found.fact("tensor_parallel_size")
    assert fact is not None
    assert fact.quote.line == 3


def test_keys_are_no_facts() -> None:
    assert "hunter2" not in repr(launch(VLLM, "vllm serve a/b --api-key hunter2").flags)


@pytest.mark.parametrize(
    ("log", "command", "program"),
    [
        ("main: server is listening on http://127.0.0.1:8080\n", "", "llama.cpp"),
        ("[2026-11-29 09:14:03] server_args=ServerArgs(model_path='m')\n", "", "sglang"),
        ("[TensorRT-LLM][INFO] started\n", "", "tensorrt-llm"),
        ("2026-11-29 09:14:03,000 INFO    vllm_srun.cli: serve m --device cpu\n", "", "vllm-srun"),
        ('{"level": "info", "msg": "starting router"}\n', "", "vllm-sr"),
        ("", "vllm-sr serve", "vllm-sr"),
        ("", "/usr/bin/vllm-srun serve m", "vllm-srun"),
        ("", "headway serve m", "headway"),
        ("", "python3 -m vllm.entrypoints.openai.api_server", "vllm"),
        ("", "llama-server -m x", "llama.cpp"),
        ("hello\n", "nginx", ""),
    ],
)
def test_the_program(log: str, command: str, program: str) -> None:
    assert launch(log, command).program == program


def test_damaged_words_of_the_engine_are_no_facts() -> None:
    found = launch("INFO non-default args: {'model': 'm', oops}\nINFO LLM engine (v1) with config: model='m', x=\n")
    assert found.flags == {}
    assert found.value("model") == "m"


def test_an_init_line_without_a_version() -> None:
    found = launch("INFO llm_engine.py:79] Initializing an LLM engine with config: model='codellama/CodeLlama-34b-hf', max_seq_len=16384\n")
    assert (found.program, found.version, found.model, found.number("max_model_len")) == ("vllm", "", "codellama/CodeLlama-34b-hf", 16384)


def test_options_of_sglang_under_the_names_of_the_flags() -> None:
    found = launch("[2026-11-29 09:14:03] server_args=ServerArgs(model_path='org/m', mem_fraction_static=0.5, tp_size=2)\n")
    assert (found.model, found.value("gpu_memory_utilization"), found.value("tp_size")) == ("org/m", "0.5", "2")


def test_of_many_starts_the_last_wins_and_each_name_is_quoted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    quote = Line.quote
    monkeypatch.setattr(Line, "quote", lambda line, start=0: (asked.append(line.number), quote(line, start))[1])
    lines = "".join(f"INFO LLM engine (v0.32.0) with config: model='m', dtype=d{number}, seed={number}\n" for number in range(50))
    found = launch(lines + "INFO LLM engine (v0.32.0) with config: model='m', dtype=last\n")
    assert (found.value("dtype"), found.value("seed")) == ("last", "49")
    assert len(asked) == 3
