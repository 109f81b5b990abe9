"""A real `headway serve` process on an AWQ checkpoint: completions are those of transformers with the matrices unpacked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch
from transformers import AutoModelForCausalLM

from headway.artifacts.tokenizer import tokenizer_at
from tests.e2e.served_model import Served, wait_ready
from tests.e2e.tiny_model import tiny_model
from tests.e2e.tiny_server import free_port
from tests.runtime.packed_packages import pair
from tests.shim.environments import ROOT

PROMPTS = ["Hello there", "def add(a, b):", "1, 2, 3, 4,", "数据库 🙂"]
COUNT = 16


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("awq")
    return pair(tiny_model(root), root, "awq")


@pytest.fixture(scope="module")
def served(folders: tuple[Path, Path]) -> Iterator[Served]:
    packed, _ = folders
    port, log = free_port(), packed.parent / "server.log"
    command = [sys.executable, "-m", "headway.cli.main", "serve", str(packed), "--port", str(port), "--dtype", "float32", "--max-model-len", "256"]
    environment = {**os.environ, "HEADWAY_CACHE": str(packed.parent / "cache"), "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment)
    found = Served(process, f"http://127.0.0.1:{port}", log)
    try:
        wait_ready(found)
        yield found
    finally:
        process.kill()
        process.wait(20)


def test_completions(folders: tuple[Path, Path], served: Served) -> None:
    _, twin = folders
    oracle = AutoModelForCausalLM.from_pretrained(twin, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = tokenizer_at(twin)
    for prompt in PROMPTS:
        body = {"prompt": prompt, "max_tokens": COUNT, "ignore_eos": True, "temperature": 0, "return_token_ids": True, "logprobs": 1}
        answer = httpx.post(served.url + "/v1/completions", json=body, trust_env=False, timeout=60).json()["choices"][0]
        ids = torch.tensor([tokenizer.encode(prompt)])
        with torch.no_grad():
            expected = oracle.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=COUNT, min_new_tokens=COUNT, do_sample=False, eos_token_id=None, pad_token_id=0
            )[0, ids.shape[1] :].tolist()
        assert answer["token_ids"] == expected, prompt
        assert answer["text"] == tokenizer.decode(expected)


def test_the_log_says_what_the_weights_are(served: Served) -> None:
    assert "stored as AWQ int4, groups of 16" in served.log.read_text()


@pytest.mark.parametrize("flag", ["gptq", "fp8", "compressed-tensors", "gguf", "int4"])
def test_a_flag_that_says_otherwise_ends_the_process(folders: tuple[Path, Path], flag: str) -> None:
    command = [sys.executable, "-m", "headway.cli.main", "serve", str(folders[0]), "--port", "0", "--quantization", flag]
    environment = {**os.environ, "HEADWAY_CACHE": str(folders[0].parent / "cache"), "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert ended.returncode != 0
    assert f"does not match the quantization method specified in the `quantization` argument ({flag})" in ended.stderr
    assert "Leave --quantization out" in ended.stderr
