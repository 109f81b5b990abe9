"""Lines in every dress that loggers, containers and journals give them say the same."""

from __future__ import annotations

import pytest

from headway.doctor.evidence.log.dress import undress
from headway.doctor.evidence.log.line import Line
from tests.doctor.judging import fixture, fixture_names
from tests.doctor.rewriting.dressing import DRESSES, coloured, is_dressed


def plain(raw: str) -> Line:
    return undress("log.txt", 1, raw)


@pytest.mark.parametrize("dress", DRESSES)
def test_every_fixture_line_reads_the_same_in(dress: str) -> None:
    compared = 0
    for name in fixture_names():
        lines = fixture(name).material.log.decode().replace("\r\n", "\n").split("\n")
        if is_dressed(lines):
            continue
        for index, line in enumerate(lines):
            bare, worn = plain(line), plain(DRESSES[dress](index, coloured([line])[0]))
            assert (worn.text.rstrip(), worn.level, worn.place) == (bare.text.rstrip(), bare.level, bare.place), line[:100]
            compared += 1
    assert compared > 3000


@pytest.mark.parametrize(
    ("raw", "process", "level", "place", "text"),
    [
        ("(EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] boom", "EngineCore pid=7", "ERROR", "core.py:93", "boom"),
        ("(VllmWorker rank=1 pid=7) INFO 11-29 09:14:03 [a.py:9] x", "VllmWorker rank=1 pid=7", "INFO", "a.py:9", "x"),
        ("INFO 11-29 09:14:05 llm_engine.py:237] Initializing", "", "INFO", "llm_engine.py:237", "Initializing"),
        ("(RayWorkerWrapper pid=21, ip=10.0.0.2) hello", "RayWorkerWrapper pid=21, ip=10.0.0.2", "", "", "hello"),
        ("(pid=812) hello", "pid=812", "", "", "hello"),
        ("(autoscaler +10s) Error: none", "autoscaler", "", "", "Error: none"),
        ("[rank3]: Traceback", "rank3", "", "", "Traceback"),
        ("[rank0]:[W1129 09:14:15.123456789 socket.cpp:436] [c10d] failed", "rank0", "WARNING", "socket.cpp:436", "[c10d] failed"),
        ("W1129 09:14:02.551000 140 site-packages/torch/run.py:774] ***", "", "WARNING", "site-packages/torch/run.py:774", "***"),
        ("[W socket.cpp:759] [c10d] Unable", "", "WARNING", "socket.cpp:759", "[c10d] Unable"),
        ("ws-7:90:91 [0] NCCL INFO Bootstrap : Using eth0", "ws-7:90:91", "", "", "NCCL INFO Bootstrap : Using eth0"),
        ("INFO:     10.0.0.7:43 - \"GET / HTTP/1.1\" 200 OK", "", "INFO", "", '10.0.0.7:43 - "GET / HTTP/1.1" 200 OK'),
        ("2026-11-29 09:14:03,163 INFO    vllm_srun.http: listening", "", "INFO", "vllm_srun.http", "listening"),
        ("2026-11-29 09:15:10 WARNING chat.client attempt 1", "", "WARNING", "", "chat.client attempt 1"),
        ("2026-11-29 09:14:22,114\tINFO worker.py:1852 -- Connecting", "", "INFO", "worker.py:1852", "Connecting"),
        ("[2026-11-29 09:14:03 TP0] Load weight begin.", "TP0", "", "", "Load weight begin."),
        ("[2026-11-29 09:14:03 +0000] [7] [INFO] Booting", "", "INFO", "", "Booting"),
        ("[TensorRT-LLM][ERROR] boom", "", "ERROR", "", "boom"),
        ("[11/29/2026-09:14:03] [TRT-LLM] [E] boom", "", "ERROR", "", "boom"),
        ("0.00.012.121 W llama: x", "", "WARNING", "", "llama: x"),
        ("2026/11/29 09:14:03 [error] 7#7: *1 upstream timed out", "", "ERROR", "", "upstream timed out"),
        ("[12345.678901] Out of memory: Killed process 7", "", "", "", "Out of memory: Killed process 7"),
        ("Nov 29 09:14:03 gpu-7 kernel: Out of memory", "kernel", "", "", "Out of memory"),
        ('{"MESSAGE": "ERROR 11-29 09:14:03 [a.py:9] x", "_SYSTEMD_UNIT": "vllm.service"}', "vllm.service", "ERROR", "a.py:9", "x"),
        ('{"level": "warn", "ts": "1", "msg": "item refused", "code": "x", "prompt": "secret words"}', "", "WARNING", "", "item refused code=x"),
        ('{"level": "info", "msg": "runtime_log", "deployment": "pii", "line": "ERROR vllm_srun.loader: boom"}', "pii", "ERROR", "vllm_srun.loader", "boom"),
        ("vllm-5d9c4b8f66-2xk9q vllm INFO 11-29 09:14:03 [a.py:9] x", "vllm-5d9c4b8f66-2xk9q vllm", "INFO", "a.py:9", "x"),
        ("vllm-0 server ValueError: x", "vllm-0 server", "", "", "ValueError: x"),
        ("[engine1]   File \"x.py\"", "engine1", "", "", '  File "x.py"'),
        ("  app-1   |   File \"x.py\"", "app-1", "", "", '  File "x.py"'),
        # looks like a dress and is none
        ("gpt-4 model is slow", "", "", "", "gpt-4 model is slow"),
        ("[c10d] The server socket has failed", "", "", "", "[c10d] The server socket has failed"),
        ("|   0  NVIDIA A100 | 00000000:01:00.0 |", "", "", "", "|   0  NVIDIA A100 | 00000000:01:00.0 |"),
        ("Loading:  31%|███       | 20/67 [00:01<00:04]", "", "", "", "Loading:  31%|███       | 20/67 [00:01<00:04]"),
        ("pod vllm-5d9c4b8f66-2xk9q: Back-off restarting", "", "", "", "pod vllm-5d9c4b8f66-2xk9q: Back-off restarting"),
        ('{"not": "a log line"}', "", "", "", '{"not": "a log line"}'),
        ("(12 tokens) left", "", "", "", "(12 tokens) left"),
    ],
)
def test_forms(raw: str, process: str, level: str, place: str, text: str) -> None:
    line = plain(raw)
    assert (line.process, line.level, line.place, line.text) == (process, level, place, text)


def test_a_process_inside_a_container_keeps_both_names() -> None:
    line = plain("node-2 | (EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] boom")
    assert (line.container, line.process) == ("node-2", "EngineCore pid=7")


def test_colours_that_lost_their_escape_are_taken_off() -> None:
    assert plain("[32mINFO[0m 11-29 09:14:03 [a.py:9] x").text == "x"
    assert plain("^[[1;36m(EngineCore pid=7)^[[0;0m x").process == "EngineCore pid=7"
