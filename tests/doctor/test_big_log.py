"""Two gigabytes of log are read in bounded memory, and the cause in their middle is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doctor.judging import fixture

_MEGABYTE = 1 << 20


def _block(number: int, filler: bytes) -> bytes:
    clock = f"11-29 {number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"
    statistics = (
        f"(APIServer pid=6) INFO {clock} [loggers.py:208] Engine 000: Avg prompt throughput: {number % 977}.0 tokens/s, Avg generation throughput:"
        f" {number % 331}.0 tokens/s, Running: {number % 90} reqs, Waiting: 0 reqs, GPU KV cache usage: {number % 70}.5%, Prefix cache hit rate: 12.5%\n"
    )
    prompt = f"(APIServer pid=6) INFO {clock} [logger.py:39] Received request c-{number}: prompt: '{'why CUDA out of memory ' * 400}', params: SamplingParams(n=1)\n"
    refused = f'(APIServer pid=6) INFO:     10.0.0.{number % 250}:{30000 + number} - "POST /v1/x{number} HTTP/1.1" 404 Not Found\n'
    return (statistics * 20 + prompt + refused * 20).encode() + filler


def _write(path: Path, megabytes: int) -> None:
    access = b'(APIServer pid=6) INFO:     10.20.0.7:43007 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    filler = access * ((_MEGABYTE - 24_000) // len(access))
    fault = fixture("memory-03").material.log
    with path.open("wb") as file:
        for number in range(megabytes):
            file.write(_block(number, filler))
            if number == megabytes // 2:
                file.write(fault)


_COMMAND = """
import sys
from pathlib import Path
from headway.cli.main import main
try:
    main()
finally:
    sys.stderr.write(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def _peak_and_report(path: Path) -> tuple[int, dict]:  # type: ignore[type-arg]
    """(KiB of resident memory at most, the report) of a process that reads `path`.

    What wait4 tells would count the size of this process too, from which the other was forked.
    """
    done = subprocess.run([sys.executable, "-c", _COMMAND, "doctor", "log", str(path), "--json"], capture_output=True, check=False)
    assert done.returncode == 1, done.stderr.decode()
    return int(done.stderr.split(b"VmHWM:")[1].split()[0]), json.loads(done.stdout)


@pytest.mark.parametrize("megabytes", [40, pytest.param(2048, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_memory_stays_bounded(megabytes: int, tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    try:
        _write(path, megabytes)
        assert path.stat().st_size > megabytes * _MEGABYTE * 0.95
        peak, report = _peak_and_report(path)
    finally:
        path.unlink()
    assert report["findings"][0]["rule"] == "O9"
    assert peak < 300 * 1024
