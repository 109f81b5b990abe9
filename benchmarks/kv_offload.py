"""Conversations that do not fit the KV cache, with and without copies of evicted blocks: `python benchmarks/kv_offload.py MODEL`.

`--talks` conversations take turns; each turn sends the whole conversation so far, as a chat does, and gets `--answer` tokens. The pool holds
`--fit` of them, so that a conversation has been evicted when its next turn comes. Engines without copies, with copies in memory and with
copies in a file alternate, turn by turn; all compute the same conversations. Printed are the medians of the time to the first token after
the first turn, the time of all turns, prompt tokens that were found, and whether all answers were the same.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass, field

from headway.engine.core import Observers
from headway.engine.llm import LLM
from headway.engine.sampling_params import SamplingParams
from headway.telemetry.stats import StepStats

GIB = 1 << 30


@dataclass
class Contender:
    """One engine and what was measured of it."""

    name: str
    llm: LLM
    first_token: list[float]
    later_turns: list[float] = field(default_factory=list)  # seconds to the first token, from the second turn on
    seconds: float = 0.0
    found: int = 0
    read: int = 0
    answers: list[list[int]] = field(default_factory=list)

    def turn(self, prompt: list[int], tokens: int, later: bool) -> list[int]:
        self.first_token.clear()
        began = time.perf_counter()
        params = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
        output = self.llm.generate(prompt, params, use_tqdm=False)[0]
        self.seconds += time.perf_counter() - began
        if later:
            self.later_turns += self.first_token
        self.found += output.num_cached_tokens
        self.read += len(prompt)
        self.answers.append(output.outputs[0].token_ids)
        return output.outputs[0].token_ids


def contender(name: str, arguments: argparse.Namespace, **more: object) -> Contender:
    first_token: list[float] = []

    def on_step(stats: StepStats) -> None:
        first_token.extend(stats.first_token_seconds)

    longest = arguments.prompt + arguments.turns * (arguments.answer + arguments.reply)
    blocks = arguments.fit * (-(-longest // 16) + 1)
    llm = LLM(
        arguments.model, max_model_len=longest + 16, num_gpu_blocks_override=blocks, kv_cache_dtype=arguments.kv_cache_dtype,
        observers=Observers(on_step), **more,
    )  # fmt: skip
    return Contender(name, llm, first_token)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m-instruct")
    parser.add_argument("--talks", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--fit", type=int, default=2, help="conversations that the pool holds")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the first turn")
    parser.add_argument("--reply", type=int, default=32, help="new tokens of each later turn")
    parser.add_argument("--answer", type=int, default=16)
    parser.add_argument("--kv-cache-dtype", default="auto")
    parser.add_argument("--gib", type=float, default=2.0, help="size of the second tier")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        contenders = [
            contender("without", arguments),
            contender("memory", arguments, kv_offloading_size=arguments.gib),
            contender("file", arguments, kv_offloading_size=arguments.gib, kv_offloading_path=folder),
        ]
        talks = {c.name: [_tokens(talk, arguments.prompt) for talk in range(arguments.talks)] for c in contenders}
        for turn in range(arguments.turns):
            for talk in range(arguments.talks):
                order = contenders[talk % len(contenders) :] + contenders[: talk % len(contenders)]
                for each in order:
                    prompt = talks[each.name][talk]
                    prompt += each.turn(prompt, arguments.answer, later=turn > 0)
                    prompt += _tokens(1000 * turn + talk, arguments.reply)
        print(f"{arguments.talks} conversations, {arguments.turns} turns, the pool holds {arguments.fit}; {arguments.model}, KV {arguments.kv_cache_dtype}")
        print(f"{'copies':<10}{'first token, median':>22}{'all turns':>14}{'found':>10}{'same answers':>15}")
        base = contenders[0]
        for each in contenders:
            median = statistics.median(each.later_turns)
            gain = statistics.median(base.later_turns) / median
            print(
                f"{each.name:<10}{median * 1000:>12.1f} ms {gain:>5.2f}x{each.seconds:>12.2f} s{each.found / each.read:>10.0%}"
                f"{'yes' if each.answers == base.answers else 'NO':>15}"
            )


def _tokens(seed: int, count: int) -> list[int]:
    """Ordinary tokens, other ones for every seed."""
    return [1000 + (seed * 7919 + i * 104729 + i * i * 31) % 30000 for i in range(count)]


if __name__ == "__main__":
    main()
