"""`headway plan` against live processes: the engine's own counters, the resident set, and speeds under the ceilings."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from headway.capacity.process_memory import MAPPED_BYTES
from tests.e2e.served_model import MODEL, Served, serve
from tests.runtime.worker_process import worker_process

NEAR = 60_000_000  # bytes of memory of its own
CONTEXT, AT_ONCE = 1024, 6

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def plan(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "headway.cli.main", "plan", *words, "--json"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def part(served: Served, name: str) -> float:
    lines = [line for line in served.get("/metrics").text.splitlines() if line.startswith("headway:memory_bytes") and f'part="{name}"' in line]
    assert len(lines) == 1, lines
    return float(lines[0].rsplit(" ", 1)[1])


def resident(pid: int) -> int:
    """With the libraries' pages as a plan charges them: how many of them are resident depends on the page cache, by 100 MB and more."""
    memory = psutil.Process(pid).memory_info()
    return int(memory.rss - memory.shared) + MAPPED_BYTES


def ask(served: Served, number: int, prompt_tokens: int, answer_tokens: int) -> None:
    ids = [(number * 7919 + place * 31) % 40_000 + 100 for place in range(prompt_tokens)]
    body = {"model": MODEL, "prompt": ids, "max_tokens": answer_tokens, "temperature": 0, "ignore_eos": True}
    assert httpx.post(served.url + "/v1/completions", json=body, timeout=300, trust_env=False).status_code == 200


@pytest.mark.timeout(600)
def test_an_engine_started_with_the_recommended_flags(tmp_path: Path) -> None:
    planned = plan(MODEL, "--max-model-len", str(CONTEXT), "--concurrency", str(AT_ONCE), "--measure")
    memory = planned["memory"]
    command = shlex.split(planned["command"])
    assert command[:3] == ["headway", "serve", MODEL]
    with serve(tmp_path, *command[3:]) as served:
        counted = {name: part(served, name) for name in ("weights", "kv_cache", "activations")}
        for name, key in (("weights", "weights_bytes"), ("kv_cache", "kv_cache_bytes"), ("activations", "activation_bytes")):
            assert memory[key] == pytest.approx(counted[name], rel=0.05), name
        log = served.log.read_text()
        assert f"Maximum concurrency for {CONTEXT:,} tokens per request: {AT_ONCE:.2f}x" in log
        assert memory["kv_cache_tokens"] == CONTEXT * AT_ONCE
        assert resident(served.process.pid) == pytest.approx(planned["resident"]["ready_bytes"], abs=NEAR)

        ceilings = planned["ceilings"]
        started = time.monotonic()
        ask(served, 1, 1, 200)
        alone = 200 / (time.monotonic() - started)
        assert alone <= ceilings["decode_tokens_per_second_alone"]
        started = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda number: ask(served, number, CONTEXT - 24, 24), range(2, 2 + AT_ONCE)))
        assert AT_ONCE * (CONTEXT - 24) / (time.monotonic() - started) <= ceilings["prefill_tokens_per_second"]
        assert served.metric("vllm:num_preemptions_total") == 0
        assert resident(served.process.pid) == pytest.approx(planned["resident"]["cache_full_bytes"], abs=NEAR)


@pytest.mark.timeout(600)
def test_an_engine_with_default_flags(tmp_path: Path) -> None:
    planned = plan(MODEL, "--no-measure")
    assert planned["command"] == f"headway serve {MODEL}"
    with serve(tmp_path) as served:
        total = sum(planned["memory"][key] for key in ("weights_bytes", "kv_cache_bytes", "activation_bytes"))
        assert total == pytest.approx(sum(part(served, name) for name in ("weights", "kv_cache", "activations")), rel=0.05)
        assert resident(served.process.pid) == pytest.approx(planned["resident"]["ready_bytes"], abs=NEAR)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", ["all-minilm-l6-v2", "sparrow-nano"])
def test_a_model_of_the_runtime(tmp_path: Path, model: str) -> None:
    planned = plan(model, "--no-measure")
    assert planned["command"] == f"vllm-srun serve {model}"
    with worker_process(tmp_path, model) as worker:
        worker.until_status("ready", 300)
        lines = [line for line in worker.client.get("/metrics").text.splitlines() if line.startswith("vllm_srun_model_memory_bytes{")]
        assert planned["memory"]["weights_bytes"] + planned["memory"]["kv_cache_bytes"] == pytest.approx(float(lines[0].rsplit(" ", 1)[1]), rel=0.05)
        assert resident(worker.process.pid) == pytest.approx(planned["resident"]["ready_bytes"], abs=NEAR)
        assert worker.end() == 0
