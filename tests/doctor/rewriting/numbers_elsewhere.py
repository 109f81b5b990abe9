"""Other counts, limits and versions for the fixtures that are not about memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

from tests.doctor.rewriting.numbers import Redraw


def _heads(random: Random) -> Redraw:
    heads = random.choice((28, 32, 56, 64))
    return Redraw({"heads (40)": f"heads ({heads})"}, {"40": str(heads)})


def _visible(random: Random) -> Redraw:
    return Redraw({"GPUs (4)": "GPUs (2)", "0,1,2,3": "0,1"}, {r"\b4\b": r"\b2\b"})


def _rendezvous(random: Random) -> Redraw:
    return Redraw({"29500": str(random.randrange(23_000, 31_000))})


def _placement(random: Random) -> Redraw:
    other = random.choice((2, 6))
    return Redraw({"gpus: 4": f"gpus: {other}"}, {r"\b12\b|8 \+ 4|4 GPUs": rf"\b{8 + other}\b|8 \+ {other}|{other} GPUs"})


def _collective(random: Random) -> Redraw:
    limit = random.choice((300, 900, 1200))
    swaps = {f"6000{end:02}": f"{limit}0{end:02}" for end in (0, 11, 12, 13)} | {"731.20": f"{limit + 131.2:.2f}"}
    return Redraw(swaps, {"600": str(limit)})


def _two_libraries(random: Random) -> Redraw:
    minor, newer = random.randrange(16, 22), random.randrange(23, 28)
    swaps = {"2.18.3": f"2.{minor}.5", "nccl-2.18": f"nccl-2.{minor}", "2.27.5": f"2.{newer}.2"}
    return Redraw(swaps)


def _cores(random: Random) -> Redraw:
    cores = random.choice((24, 48, 64))
    return Redraw({"cpus: 32": f"cpus: {cores}", "0-31": f"0-{cores - 1}"}, {r"\b16\b|=1\b|1 thread|cores": rf"\b{cores // 2}\b|=1\b|1 thread|cores"})


def _old_card(random: Random) -> Redraw:
    name, capability = random.choice((("Tesla M40", "5.2"), ("Tesla P100", "6.0"), ("GTX 1080 Ti", "6.1")))
    return Redraw({"Tesla P40": name, "6.1": capability})


def _context_limits(random: Random) -> Redraw:
    scale = random.choice((1, 2, 4))
    return Redraw({"8192": str(4096 * scale), "32768": str(16384 * scale + 8192)})


def _descriptors(random: Random) -> Redraw:
    return Redraw({"1024": str(random.choice((256, 512, 2048)))})


def _proxy_limit(random: Random) -> Redraw:
    limit = random.choice((30, 90, 120))
    return Redraw({f"60.{thousandth:03}": f"{limit}.{thousandth:03}" for thousandth in range(20)})


def _capability(random: Random) -> Redraw:
    name, capability = random.choice((("Tesla P40", "6.1"), ("Tesla P100", "6.0"), ("Titan V", "7.0")))
    digits = capability.replace(".", "")
    swaps = {"Tesla V100": name, "'7.0'": f"'{capability}'", "capability: 70": f"capability: {digits}"}
    return Redraw(swaps, {r"7\.0|70|V100": f"{re.escape(capability)}|{digits}|{name.split()[1]}"})


def _slots(random: Random) -> Redraw:
    slots = random.choice((24, 48, 96))
    swaps = {"Running: 64": f"Running: {slots}", "'max_num_seqs': 64": f"'max_num_seqs': {slots}", "--max-num-seqs 64": f"--max-num-seqs {slots}"}
    return Redraw(swaps, {r"\b64\b": rf"\b{slots}\b", r"max[-_]num[-_]seqs[ =](8|16|32|48|64)\b": rf"max[-_]num[-_]seqs[ =](8|16|{slots})\b"})


def _quota(random: Random) -> Redraw:
    cores, threads = random.choice((2, 6, 8)), random.choice((96, 128, 256))
    swaps = {"400000 100000": f"{cores}00000 100000", "cpus: 192": f"cpus: {threads}", "threads: 192": f"threads: {threads}"}
    return Redraw(swaps, {r"\b4\b": rf"\b{cores}\b", "192": str(threads)})


def _budget(random: Random) -> Redraw:
    free = round(random.uniform(2, 9), 1)
    needed = round(free + random.uniform(1, 9), 1)
    return Redraw({"9.8": f"{needed}", "5.9": f"{free}"})


def _patience(random: Random) -> Redraw:
    limit = random.choice((50, 60, 100))
    return Redraw({'_ms": 80': f'_ms": {limit}', "0.131": f"{random.uniform(0.15, 0.4):.3f}"})


def _threads(random: Random) -> Redraw:
    threads = random.choice((12, 24))
    swaps = {"threads: 16": f"threads: {threads}", "VLLM_SRUN_CPU_THREADS: '16'": f"VLLM_SRUN_CPU_THREADS: '{threads}'"}
    return Redraw(
        swaps,
        {
            r"48|3 (x|×|\*)|three|16|\b8\b": rf"{3 * threads}|3 (x|×|\*)|three|{threads}|\b8\b",
            r"VLLM_SRUN_CPU_THREADS=(16|32|48)": rf"VLLM_SRUN_CPU_THREADS=({threads}|{2 * threads}|{3 * threads})",
        },
    )


def _input_limit(random: Random) -> Redraw:
    return Redraw({"8192": str(random.choice((2048, 4096)))})


ELSEWHERE: Mapping[str, Callable[[Random], Redraw]] = {
    "distributed-01": _heads,
    "distributed-03": _visible,
    "distributed-08": _rendezvous,
    "distributed-10": _placement,
    "distributed-13": _collective,
    "distributed-14": _two_libraries,
    "distributed-17": _cores,
    "loading-09": _old_card,
    "loading-14": _context_limits,
    "network-13": _descriptors,
    "network-18": _proxy_limit,
    "quantization-03": _capability,
    "runtime-04": _budget,
    "runtime-12": _patience,
    "runtime-14": _input_limit,
    "runtime-24": _threads,
    "runtime-36": _input_limit,
    "throughput-01": _slots,
    "throughput-05": _quota,
}
