"""Records scrapes of a real vLLM: `python record_vllm.py VLLM MODEL [PORT]`, with the executable of a vLLM for CPUs and a small model.

Three states, two scrapes each, six seconds apart: idle after some requests, a cap of two sequences under twelve clients, and so few
cache blocks that sequences are preempted. Headway's doctor looks at the live server in each state too, and what it answers is printed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.doctor.live.load import clients, completion

HERE = Path(__file__).parent
STATES = {
    "vllm-0.32-idle": ((), 0, 20),
    "vllm-0.32-capped": (("--max-num-seqs", "2"), 12, 120),
    "vllm-0.32-preempting": (("--num-gpu-blocks-override", "40"), 12, 150),
}


def main() -> None:
    vllm, model, port = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "8101"
    url = f"http://127.0.0.1:{port}"
    for name, (flags, number, tokens) in STATES.items():
        environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
        environment.pop("PYTHONPATH", None)
        words = [vllm, "serve", model, "--served-model-name", "m", "--port", port, "--host", "127.0.0.1", "--max-model-len", "512", "--block-size", "16", *flags]
        with Path(f"/tmp/{name}.log").open("wb") as log:
            server = subprocess.Popen(words, stdout=log, stderr=log, env=environment, start_new_session=True)
        try:
            for _ in range(600):
                try:
                    if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                        break
                except httpx.TransportError:
                    pass
                time.sleep(0.5)
            for index in range(4):
                httpx.post(f"{url}/v1/completions", json={"model": "m", **completion(f"warm {index}", 8)}, timeout=120, trust_env=False)
            with clients(url, number, lambda k: {"model": "m", **completion(f"request {k} tells a story", tokens)}, warm_seconds=4.0):
                for index in (1, 2):
                    (HERE / f"{name}-{index}.prom").write_text(httpx.get(f"{url}/metrics", trust_env=False).text)
                    time.sleep(6 if index == 1 else 0)
                command = [sys.executable, "-m", "headway.cli.main", "doctor", "serve", url, "--seconds", "6", "--requests", "0", "--json"]
                report = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
                print(name, report["verdict"], [(finding["rule"], finding["confidence"]) for finding in report["findings"]], flush=True)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)


if __name__ == "__main__":
    main()
