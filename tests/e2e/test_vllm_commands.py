"""The engine's commands of a widely copied vLLM troubleshooting guide, run as they stand through the alias `vllm`.

MODEL and the guide's model names become a tiny local model, port 8000 a free one; nothing else changes. Each either
does its work or is refused with the reason; none crashes.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from headway.shim.version import ALIAS_VERSION
from tests.e2e.tiny_model import tiny_model
from tests.shim.environments import Environment, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
_NAMES = re.compile(r"\b(meta-llama/[\w.-]+|TheBloke/[\w.-]+|TinyLlama/[\w.-]+|(DRAFT_)?MODEL)\b")


@dataclass(frozen=True)
class Line:
    """`log`: what it must say. `code`: exit code of a command that is refused. `variables`: what the guide exports before it."""

    text: str
    log: tuple[str, ...] = ()
    code: int = 0
    variables: dict[str, str] = field(default_factory=dict)


_HEADS = "Total number of attention heads (4) must be divisible by tensor parallel size (8)"
_NCCL = {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_TIMEOUT": "1800", "NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "0"}
_NODE = {"MASTER_ADDR": "192.168.1.10", "MASTER_PORT": "29500", "RANK": "0", "WORLD_SIZE": "2"}
SERVES = [
    Line("vllm serve meta-llama/Llama-3-8B-Instruct", ("Starting vLLM server on http://", "Loading weights took")),
    Line("vllm serve MODEL --gpu-memory-utilization 0.7 # Try 0.7, 0.75, 0.8", ("Available KV cache memory: ",)),
    Line("vllm serve MODEL --gpu-memory-utilization 0.85"),
    Line("vllm serve MODEL --max-model-len 4096 # Instead of 8192", ("Using max model len 4096",)),
    Line("vllm serve MODEL --max-num-seqs 128 # Default is 256", ("max_num_seqs=128",)),
    Line("vllm serve MODEL --max-num-seqs 64", ("max_num_seqs=64",)),
    Line("vllm serve MODEL \\\n  --enable-prefix-caching \\\n  --enable-chunked-prefill \\\n  --max-num-seqs 512", ("max_num_seqs=512",)),
    Line("vllm serve MODEL --max-num-seqs 1024"),
    Line("vllm serve MODEL --enable-prefix-caching # For repeated prompts"),
    Line("vllm serve MODEL --disable-flash-attn", ("--disable-flash-attn was renamed to --attention-backend native",)),
    Line("vllm serve MODEL --host 0.0.0.0 --port 8000"),
    Line(
        "vllm serve MODEL 2>&1 | tee vllm_debug.log",
        ("INFO", "VLLM_USE_V1 is set and has no effect", "VLLM_TRACE_FUNCTION"),
        variables={"VLLM_LOGGING_LEVEL": "DEBUG", "VLLM_TRACE_FUNCTION": "1", "VLLM_USE_V1": "1", "CUDA_VISIBLE_DEVICES": "0,1,2,3"},
    ),
    Line("vllm serve MODEL --speculative-model DRAFT_MODEL", ("--speculative-model was renamed to --spec-model", "Draft model ", "up to 5 drafts")),
    Line(
        "vllm serve meta-llama/Llama-3-70B-Instruct \\\n  --speculative-model TinyLlama/TinyLlama-1.1B-Chat-v1.0 \\\n  --num-speculative-tokens 5",
        ("--num-speculative-tokens was renamed to --spec-tokens", "draft_model, up to 5 drafts"),
    ),
    Line(
        "vllm serve MODEL \\\n  --speculative-method ngram \\\n  --num-speculative-tokens 3",
        ("--speculative-method was renamed to --spec-method", "ngram, up to 3 drafts"),
    ),
    Line("vllm serve MODEL --tensor-parallel-size 2 # Split across 2 GPUs", ("2 ranks on 1 node(s): tensor parallel 2",)),
    Line("vllm serve MODEL --tensor-parallel-size 4 # Not 3 or 5", ("4 ranks on 1 node(s)",)),
    Line("vllm serve MODEL --quantization fp8", ("--quantization fp8", "speed")),
    Line("python -m vllm.entrypoints.openai.api_server --model MODEL"),
]
REFUSED = [
    Line("vllm serve MODEL --quantization awq # 4x memory reduction", ("--quantization awq", "not quantized"), 1),
    Line("vllm serve MODEL --quantization awq --dtype float16", ("--quantization awq",), 1),
    Line(
        "vllm serve TheBloke/Llama-2-70B-AWQ \\\n  --quantization awq \\\n  --tensor-parallel-size 1 \\\n  --gpu-memory-utilization 0.95 \\\n"
        "  --max-model-len 4096",
        ("--quantization awq",),
        1,
    ),
    Line("vllm serve MODEL --quantization gptq", ("--quantization gptq",), 1),
    Line("vllm serve MODEL --tensor-parallel-size 8", (_HEADS, "Use one of 1, 2, 4;"), 1, _NCCL),
    Line(
        "vllm serve meta-llama/Llama-2-70b-hf \\\n  --tensor-parallel-size 8 \\\n  --pipeline-parallel-size 2",
        (_HEADS,),
        1,
        _NODE,
    ),
    Line("vllm serve MODEL --trust-remote-code", ("--trust-remote-code is refused: code from model repositories is never run",), 2),
]
PRINTS = [
    Line("vllm --version", (ALIAS_VERSION,)),
    Line("python -c 'import vllm; print(vllm.__version__)'", (ALIAS_VERSION,)),
    Line(
        "vllm bench throughput \\\n  --model MODEL \\\n  --input-tokens 128 \\\n  --output-tokens 256 \\\n  --num-prompts 100",
        ("Throughput: ", "Total num prompt tokens:  12800", "Total num output tokens:  25600"),
    ),
    # The lengths and the batch are the guide's; how often it is repeated is not in the guide.
    Line(
        "vllm bench latency \\\n  --model MODEL \\\n  --input-tokens 128 \\\n  --output-tokens 256 \\\n  --batch-size 8"
        " --num-iters-warmup 0 --num-iters 2",
        ("Avg latency: ", "99% percentile latency: "),
    ),
    Line(
        "python -c \"from vllm import LLM, SamplingParams\nllm = LLM(model='meta-llama/Llama-3-8B-Instruct')\n"
        "sampling = SamplingParams(temperature=0.7, max_tokens=256)\n"
        "outputs = llm.generate(['Explain quantum computing'], sampling)\nprint('TEXT:', outputs[0].outputs[0].text)\"",
        ("TEXT: ",),
    ),
    Line("python -c 'from vllm import SamplingParams; print(SamplingParams(temperature=0.8, top_p=0.95).top_p)'", ("0.95",)),
]
_ASK = """curl -s http://localhost:8000/health
curl -s http://localhost:8000/v1/models
curl -s http://localhost:8000/v1/completions \\
  -H 'Content-Type: application/json' \\
  -d '{
    "model": "MODEL",
    "prompt": "Hello",
    "max_tokens": 10
  }'
curl -s http://localhost:8000/metrics | grep vllm_time_to_first_token
curl -s http://localhost:8000/metrics | grep -e ^vllm_time_per_output_token_seconds_count -e ^vllm_num_requests_running \\
  -e ^vllm_gpu_cache_usage_perc -e ^vllm_request_success_total"""
ASKED = ('{"status":"ok"}', '"object":"list"', '"finish_reason":', "vllm_time_to_first_token_seconds_bucket", 'finished_reason="length"',
         "vllm_time_per_output_token_seconds_count", "vllm_gpu_cache_usage_perc", "vllm_num_requests_running")  # fmt: skip


@pytest.fixture(scope="module")
def aliased(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = environment(tmp_path_factory.mktemp("aliased") / "venv")
    assert made.headway("shim", "install").returncode == 0
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@dataclass(frozen=True)
class Shell:
    """Runs lines of the guide in the environment with the alias."""

    aliased: Environment
    model: Path
    folder: Path
    port: int

    def line(self, line: Line) -> str:
        text = _NAMES.sub(str(self.model), line.text.replace("8000", str(self.port)))
        served = " serve " in text or "api_server" in text
        if served and "--port" not in text:
            before, pipe, after = re.sub(r"\s+#.*", "", text).partition(" 2>&1")
            text = f"{before} --port {self.port}{pipe}{after}"
        return text

    def variables(self, line: Line) -> dict[str, str]:
        plain = {k: v for k, v in self.aliased.variables().items() if not k.startswith(("VLLM_", "NCCL_"))}
        return {**plain, "HEADWAY_CACHE": str(self.folder / "cache"), "HF_HUB_OFFLINE": "1", **line.variables}

    def run(self, line: Line) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", self.line(line)], cwd=self.folder, env=self.variables(line), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=170, check=False,
        )  # fmt: skip

    @contextlib.contextmanager
    def serving(self, line: Line) -> Iterator[Path]:
        """A server that is ready; ended with SIGTERM to all of the pipeline's processes. Gives its log."""
        log = self.folder / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", self.line(line)], cwd=self.folder, env=self.variables(line), stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        try:
            deadline = time.monotonic() + 120
            while not self._is_ready():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield log
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture
def shell(aliased: Environment, model: Path, tmp_path: Path) -> Shell:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Shell(aliased, model, tmp_path, int(probe.getsockname()[1]))


@pytest.mark.parametrize("line", SERVES, ids=lambda line: line.text)
def test_it_serves(shell: Shell, line: Line) -> None:
    with shell.serving(line) as log:
        body = {"prompt": "Hello", "max_tokens": 3, "ignore_eos": True}
        answer = httpx.post(f"http://127.0.0.1:{shell.port}/v1/completions", json=body, trust_env=False, timeout=60)
        assert answer.json()["usage"]["completion_tokens"] == 3
    said = log.read_text()
    assert [text for text in line.log if text not in said] == []
    assert "Traceback" not in said


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line.text)
def test_it_is_refused_with_the_reason(shell: Shell, line: Line) -> None:
    done = shell.run(line)
    assert [text for text in line.log if text not in done.stdout] == [], done.stdout
    assert "Traceback" not in done.stdout
    assert done.returncode == line.code


@pytest.mark.parametrize("line", PRINTS, ids=lambda line: line.text)
def test_it_does_its_work(shell: Shell, line: Line) -> None:
    done = shell.run(line)
    assert [text for text in line.log if text not in done.stdout] == [], done.stdout
    assert done.returncode == 0


def test_the_guides_questions_are_answered(shell: Shell) -> None:
    with shell.serving(Line("vllm serve MODEL")):
        done = shell.run(Line(_ASK))
    assert [text for text in ASKED if text not in done.stdout] == [], done.stdout
    assert done.returncode == 0
