"""Other cards, models and caches for the fixtures about memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

from tests.doctor.rewriting.numbers import Redraw

_CARDS = (39.39, 44.4, 47.43, 79.14)


def _neighbour(random: Random) -> Redraw:
    total = random.choice(_CARDS)
    theirs = round(total * random.uniform(0.5, 0.7), 1)
    own = total - theirs - 0.16
    swaps = {"23.57": f"{total:.2f}", "14.10": f"{theirs:.2f}", "9.37": f"{own:.2f}", "8.90": f"{own - 0.47:.2f}"}
    return Redraw(swaps, {r"14\.1": re.escape(f"{theirs:.1f}")})


def _weights_too_large(random: Random) -> Redraw:
    total = random.choice((15.77, 19.67, 21.99))
    return Redraw({"23.57": f"{total:.2f}", "23.46": f"{total - 0.11:.2f}", "23.20": f"{total - 0.37:.2f}"})


def _fragmented(random: Random) -> Redraw:
    total = random.choice(_CARDS)
    idle = round(random.uniform(0.2, 0.3) * total, 2)
    used = total - 0.2
    swaps = {"23.57": f"{total:.2f}", "23.37": f"{used:.2f}", "17.02": f"{used - idle - 0.64:.2f}", "5.71": f"{idle:.2f}"}
    return Redraw(swaps, {r"5\.7|fragment": re.escape(f"{idle:.1f}") + "|fragment"})


def _cap_below_weights(random: Random) -> Redraw:
    share = random.choice((0.85, 0.86, 0.87))
    cap = 32 * share
    return Redraw({"0.9": f"{share}"}, {r"28\.8|0\.9\s*(×|x|\*)": rf"{cap:.1f}|{cap:.2f}|{share}\s*(×|x|\*)".replace(".", r"\.")})


def _blocks(random: Random) -> Redraw:
    blocks = random.randrange(300, 1500)
    tokens = 16 * blocks
    fits = "|".join(str(tokens // step * step) for step in (16, 32, 64, 128, 256, 512, 1024))
    pattern = r"max[-_]model[-_]len[ =](73[0-4]\d|72\d\d|71\d\d|70\d\d|6\d{3}|4096)"
    return Redraw({"459": str(blocks), "7344": str(tokens)}, {pattern: rf"max[-_]model[-_]len[ =](?:{fits})\b"})


def _cpu_cache(random: Random) -> Redraw:
    space = random.choice((2, 3))
    fits = 37376 * space // 4
    swaps = {"4.00": f"{space}.00", "VLLM_CPU_KVCACHE_SPACE: '4'": f"VLLM_CPU_KVCACHE_SPACE: '{space}'", "37376": str(fits)}
    return Redraw(swaps, {r"37376|37\d{3}": rf"{fits}|{fits // 1000}\d{{3}}"})


def _leftover(random: Random) -> Redraw:
    total, free = random.choice(_CARDS), round(random.uniform(2, 8), 2)
    swaps = {"23.69": f"{total:.2f}", "3.11": f"{free:.2f}", "21.79": f"{0.92 * total:.2f}", "20.58": f"{total - free:.2f}", "20.3": f"{total - free - 0.28:.1f}"}
    return Redraw(swaps)


def _ram_share(random: Random) -> Redraw:
    total = random.choice((31.2, 62.7, 125.6))
    free = round(total * random.uniform(0.6, 0.8), 1)
    swaps = {"23.41": f"{total:.2f}", "17.90": f"{free:.2f}", "21.53": f"{0.92 * total:.2f}"}
    return Redraw(swaps, {r"17\.9": re.escape(f"{free:.1f}")})


def _rim(random: Random) -> Redraw:
    total = random.choice(_CARDS)
    cache = 6.31 + (total - 23.64) * 0.98
    return Redraw({"23.64": f"{total:.2f}", "23.59": f"{total - 0.05:.2f}", "21.90": f"{total - 1.74:.2f}", "6.31": f"{cache:.2f}"})


def _log_probabilities(random: Random) -> Redraw:
    tokens = random.randrange(26_000, 32_000)
    asked = tokens * 152064 * 4 / 2**30
    return Redraw({"31870": str(tokens), "18.05": f"{asked:.2f}"}, {r"vocab|15\d{4}|18\.0": rf"vocab|15\d{{4}}|{asked:.1f}"})


def _container_limit(random: Random) -> Redraw:
    limit = random.choice((40, 48, 72))
    return Redraw({"64": str(limit)}, {"64|limit|cgroup": f"{limit}|limit|cgroup"})


def _sick_rank(random: Random) -> Redraw:
    left = round(random.uniform(0.2, 0.6), 2)
    used = 10.6 + 0.31 - left
    fits = int(16384 * left / 2) // 16 * 16
    swaps = {"0.31": f"{left:.2f}", "2528": str(fits), "10.6": f"{used:.1f}", "10.3": f"{used - 0.3:.1f}"}
    return Redraw(
        swaps,
        {
            r"0\.31|10\.94|10\.6|smallest": rf"{left:.2f}|10\.94|{used:.1f}|smallest",
            r"max[-_]model[-_]len[ =]2\d{3}": rf"max[-_]model[-_]len[ =]{fits // 1000 or ''}\d{{3}}\b",
        },
    )


def _unquantised(random: Random) -> Redraw:
    total = random.choice((7.78, 9.77, 10.9))
    return Redraw({"11.76": f"{total:.2f}", "11.66": f"{total - 0.1:.2f}", "11.50": f"{total - 0.26:.2f}"})


def _small_card(random: Random) -> Redraw:
    return Redraw({"11502": str(random.randrange(7000, 16000))})


MEMORY: Mapping[str, Callable[[Random], Redraw]] = {
    "memory-01": _neighbour,
    "memory-02": _weights_too_large,
    "memory-03": _fragmented,
    "memory-04": _cap_below_weights,
    "memory-06": _blocks,
    "memory-07": _cpu_cache,
    "memory-10": _leftover,
    "memory-11": _ram_share,
    "memory-12": _rim,
    "memory-13": _log_probabilities,
    "memory-14": _container_limit,
    "memory-16": _sick_rank,
    "memory-17": _unquantised,
    "memory-19": _small_card,
}
