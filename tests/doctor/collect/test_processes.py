"""Which processes are servers, by their words; and real ones, with their ports and their children."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from headway.doctor.collect.network import Address
from headway.doctor.collect.own_server import own_key, own_url
from headway.doctor.collect.processes import ServerProcess, running_program, server_at, server_processes


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("/usr/bin/python3 /usr/local/bin/vllm serve org/model", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("python3.12 -u -X dev -m vllm.entrypoints.cli.main serve m", "vllm"),
        ("/v/bin/python3.11 /v/bin/headway serve smollm2", "headway"),
        ("/v/bin/python -m headway.cli.main serve x", "headway"),
        ("/v/bin/python /v/bin/vllm-srun serve x", "vllm-srun"),
        ("/v/bin/python -m headway.cli.sr serve --config c", "vllm-sr"),
        ("/v/bin/vllm-sr serve", "vllm-sr"),
        ("/opt/llama-server -m x.gguf", "llama.cpp"),
        ("python -m sglang.launch_server --model-path m", "sglang"),
        ("trtllm-serve m", "tensorrt-llm"),
        # none of a server
        ("/v/bin/python /v/bin/headway doctor serve http://localhost:8000", ""),
        ("/v/bin/python /v/bin/headway up", ""),
        ("/v/bin/vllm bench serve --model m", ""),
        ("timeout 60 vllm serve m", ""),
        ("grep vllm serve", ""),
        ("bash -c vllm serve m", ""),
        ("vim vllm", ""),
        ("python", ""),
    ],
)
def test_words_of_a_process(command: str, program: str) -> None:
    assert running_program(command.split()) == program


def test_the_command_is_told_without_the_interpreter() -> None:
    argv = ("/v/bin/python3.11", "-u", "-m", "headway.cli.main", "serve", "a b", "--port", "1")
    assert ServerProcess(1, "headway", argv, ()).command == "headway serve 'a b' --port 1"


_SERVER = """
    import socket, subprocess, sys, time
    listening = socket.create_server(("127.0.0.1", 0))
    if "--child" in sys.argv:
        sys.argv.remove("--child")
        subprocess.Popen([sys.executable, *sys.argv])
    time.sleep(60)
"""


def test_a_real_process_with_a_child_of_the_same_program(tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text(textwrap.dedent(_SERVER))
    process = subprocess.Popen([sys.executable, str(program), "serve", "org/model", "--child"])
    try:
        found: list[ServerProcess] = []
        for _ in range(200):
            found = [server for server in server_processes() if server.argv[1:2] == (str(program),)]
            if found and len(found[0].ports) == 2:
                break
            time.sleep(0.05)
        assert [server.pid for server in found] == [process.pid], "the child is its worker"
        assert len(found[0].ports) == 2
        assert found[0].command == "vllm serve org/model --child"
        reached = server_at(Address("localhost", found[0].ports[0]))
        assert reached is not None
        assert reached.pid == process.pid
        assert server_at(Address("192.0.2.77", found[0].ports[0])) is None, "another host"
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait(10)


@pytest.mark.parametrize(
    ("flags", "ports", "url"),
    [
        ("", (8000,), "http://127.0.0.1:8000"),
        ("", (4321, 8000, 45000), "http://127.0.0.1:8000"),
        ("--port 9000", (5555, 9000), "http://127.0.0.1:9000"),
        ("--port 9000", (5555,), "http://127.0.0.1:5555"),
        ("--host 0.0.0.0", (8000,), "http://127.0.0.1:8000"),
        ("--host 10.1.2.3", (8000,), "http://10.1.2.3:8000"),
        ("--host ::1", (8000,), "http://[::1]:8000"),
        ("--ssl-keyfile k --ssl-certfile c", (8000,), "https://127.0.0.1:8000"),
        ("--uds /tmp/s", (), ""),
    ],
)
def test_how_an_own_server_is_reached(flags: str, ports: tuple[int, ...], url: str) -> None:
    assert own_url(ServerProcess(1, "vllm", ("vllm", "serve", "m", *flags.split()), ports)) == url


def test_an_own_server_is_asked_with_its_own_key() -> None:
    assert own_key(ServerProcess(1, "vllm", ("vllm", "serve", "m", "--api-key", "abc"), (1,))) == "abc"
    process = subprocess.Popen([sys.executable, "-c", "print('runs', flush=True); input()"], env={"VLLM_API_KEY": "from-env"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"runs\n"
    try:
        assert own_key(ServerProcess(process.pid, "vllm", ("vllm", "serve", "m"), (1,))) == "from-env"
    finally:
        process.kill()
        process.wait(10)
