"""The KV cache has no room for a single block: which term of the budget used it up (O1), or that the cap is too small (O10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import SIZE, gib
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.memory.blame import blame
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.headway_cache import BELOW_A_BLOCK, SHARE_SUM, cache_below_a_block
from headway.doctor.rules.memory.headway_cache import SIGHTS as HEADWAY_SIGHTS
from headway.doctor.rules.memory.lighter_weights import lighter_weights
from headway.doctor.rules.memory.sizes import kv_gib, round_down, round_up, utilization, weights_gib
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_BLOCKS: Final = sight(
    "No available memory for the cache blocks", "PU blocks: 0", "cuda blocks: 0", "CUDA blocks: 0", "Available KV cache memory: -",
    "reserved for KV Cache is -", "Please try to increase --mem-fraction-static", "no memory is left for the KV cache", "and one block of",
    pattern=r"No available memory for the cache blocks|(?:GPU|cuda|CUDA) blocks: 0\b|(?:KV cache memory: |KV Cache is )-(?:0\.0*[1-9]|[1-9])"
    r"|Not enough memory\. Please try to increase|no memory is left for the KV cache|the KV cache has .* and one block of \d+ tokens takes",
)  # fmt: skip
BESIDE_TORCH: Final = sight("non_torch_memory takes", pattern=rf"non_torch_memory takes (?P<size>{SIZE})")  # others are in it
Fault = Literal["foreign", "cap", "weights", "activations"]

_HIGHEST: Final = 0.95
_GUESSED_PEAK: Final = 1.0
_ONE_SEQUENCE: Final = 0.5
_FOREIGN_GIB: Final = 1.0
_SHOWN: Final = 0.005  # smaller terms of a sum would read as 0.00
_OWN_CONTEXT: Final = 0.5
_NOT_SMALL: Final = 0.85  # a share from here on was not set too low
_LARGE: Final = 0.7  # weights above this part of the device are the large term, whatever the share


@dataclass(frozen=True, slots=True)
class Room:
    """GiB; None = unknown. `least`: the smallest share of the total that leaves room for one sequence."""

    hit: Hit
    fault: Fault
    share: float
    total: float | None
    weights: float | None
    peak: float | None
    foreign: float
    available: float | None
    sequence: float
    least: float | None

    @property
    def cap(self) -> float | None:
        return None if self.total is None else self.share * self.total

    def sum(self) -> Words:
        """The budget, each known term shown."""
        parts, zh = [], []
        if self.cap is not None and self.total is not None:
            parts.append(f"{self.share:g} x {self.total:.2f} = {self.cap:.2f} GiB cap")
            zh.append(f"上限 {self.share:g} x {self.total:.2f} = {self.cap:.2f} GiB")
        else:
            parts.append(f"a cap of {self.share:g} of the device")
            zh.append(f"上限为设备的 {self.share:g}")
        if self.weights is not None:
            parts.append(f"- {self.weights:.2f} weights")
            zh.append(f"- 权重 {self.weights:.2f}")
        if self.peak is None:
            parts.append(f"- about {_GUESSED_PEAK:g} activations")
            zh.append(f"- 激活约 {_GUESSED_PEAK:g}")
        elif self.peak >= _SHOWN:
            parts.append(f"- {self.peak:.2f} activations and others")
            zh.append(f"- 激活及其他 {self.peak:.2f}")
        if self.foreign >= _FOREIGN_GIB:
            parts.append(f"- {self.foreign:.2f} of other processes")
            zh.append(f"- 其他进程 {self.foreign:.2f}")
        rest = self.available
        if rest is None and self.cap is not None and self.weights is not None:
            rest = (
                self.cap
                - self.weights
                - (self.peak if self.peak is not None else _GUESSED_PEAK)
                - (self.foreign if self.foreign >= _FOREIGN_GIB else 0)
            )
        tail = f" = {rest:.2f} GiB for blocks" if rest is not None else ""
        return Words(" ".join(parts) + tail, " ".join(zh) + (f" = 留给缓存块 {rest:.2f} GiB" if rest is not None else ""))

    def quotes(self, case: Case) -> list[Quote]:
        facts = (case.memory.total, case.memory.utilization, case.memory.weights, case.memory.peak)
        return [self.hit.quote(), *(fact.quote for fact in facts if fact is not None)]


def room_of(case: Case) -> Room | None:
    """None when the cache found room."""
    hit, failure = case.log.first(NO_BLOCKS), blame(case)
    if case.log.sees(BELOW_A_BLOCK):
        return None  # it says itself what is missing
    if hit is None:
        if failure is None or failure.rule != "O1":
            return None
        hit = failure.oom.hit
    memory, share, weights = case.memory, utilization(case), weights_gib(case)
    available = memory.kv_available.value if memory.kv_available and memory.kv_available.value <= 0 else None
    peak = memory.peak.value if memory.peak else None
    if peak is None and failure is not None and failure.rule == "O1" and weights is not None and failure.oom.own is not None:
        peak = failure.oom.own + (failure.oom.asked or 0.0) - weights  # it ran out while activations were measured
    total = memory.total.value if memory.total else None
    if (ours := case.log.first(SHARE_SUM)) is not None:
        total, share, weights, peak = gib(ours["limit"]), ours.number("share"), gib(ours["to_load"]) + gib(ours["own"]), 0.0
    if total is None and None not in (available, peak, weights):
        total = (weights + peak + available) / share  # type: ignore[operator]
    gpu = case.device.gpu(0)
    foreign = (sum(size for _, _, size in gpu.processes) or gpu.used or 0.0) if gpu else 0.0
    if (beside := case.log.last(BESIDE_TORCH)) is not None and foreign < _FOREIGN_GIB:
        foreign = max(0.0, gib(beside["size"]) - _OWN_CONTEXT)
    if peak is None and total is not None and weights is not None and available is not None:
        peak = max(0.0, share * total - weights - available - (foreign if foreign >= _FOREIGN_GIB else 0.0))
    sequence = kv_gib(case, case.launch.number("max_model_len") or 4096) or _ONE_SEQUENCE
    least = None
    if weights is not None and total is not None:
        least = round_up((weights + (peak if peak is not None else _GUESSED_PEAK) + sequence) / total)
    room = Room(hit, "weights", share, total, weights, peak, foreign, available, sequence, least)
    return replace(room, fault=_fault(room))


def _fault(room: Room) -> Fault:
    peak = room.peak if room.peak is not None else _GUESSED_PEAK
    if room.total is None or room.weights is None or room.cap is None or room.least is None:
        return "cap" if room.share <= 0.5 else "weights"
    needed = room.weights + peak + room.sequence
    # What others hold counts inside the cap: ending it helps where the model alone fits; else the cap has to grow as well.
    crowded = room.foreign >= _FOREIGN_GIB and needed + room.foreign > room.cap
    if crowded and (needed <= room.cap or needed <= _HIGHEST * room.total < needed + room.foreign):
        return "foreign"
    steep = room.weights + 1.5 < room.cap and peak > max(2.0, 0.3 * room.weights)
    if room.share < room.least <= _HIGHEST and room.weights < _LARGE * room.total and not (steep and room.share >= _NOT_SMALL):
        return "cap"
    return "activations" if steep else "weights"


def no_room(case: Case) -> Found | None:
    room = room_of(case)
    if room is None:
        return cache_below_a_block(case)
    if room.fault in ("cap", "foreign"):
        return None
    terms = room.sum()
    if room.fault == "activations":
        step = int(case.launch.number("max_num_batched_tokens") or 8192)
        smaller = max(512, step // 4)
        cause = Words(
            f"No KV block fits: {terms.en}. The activations of one step of {step} tokens are the large term, not the weights.",
            f"放不下任何 KV 块：{terms.zh}。占大头的是一步 {step} 个 token 的激活，而不是权重。",
        )
        fixes = [
            Fix(Words("make the step, and with it the activation peak, smaller", "减小单步 token 数，从而降低激活峰值"), flag(case, "step", smaller))
        ]
        fixes.append(Fix(Words("and fewer sequences at once", "并减少同时处理的序列数"), flag(case, "sequences", 64)))
    elif room.weights is None:
        cause = Words(
            f"No KV block fits into {room.share:g} of the device. What used it up is not in this log: weights, the activations of a step, or another process."
            " Raising the share, as the message says, helps only if the weights are small.",
            f"设备的 {room.share:g} 中放不下任何 KV 块。日志没有说明被什么用掉：权重、单步激活，还是其他进程。报错建议的调高份额只在权重很小时才有用。",
        )
        fixes = _unknown_weights(case)
    else:
        tight = room.least is not None and room.share < room.least <= _HIGHEST
        more = f"a share of {room.least:g} would only just leave room for one sequence" if tight else "a share near 1 would not help"
        more_zh = f"份额 {room.least:g} 也只够放一个序列" if tight else "把份额提到接近 1 无济于事"
        cause = Words(
            f"No KV block fits: {terms.en}. The weights are the large term, so {more}, and a smaller share makes it worse.",
            f"放不下任何 KV 块：{terms.zh}。占大头的是权重，因此{more_zh}，调低份额只会更糟。",
        )
        fixes = lighter_weights(case, room.weights, room.total)
    return Found(
        cause=cause,
        evidence=room.quotes(case),
        fixes=fixes,
        verify=Words(
            "start again: `Available KV cache memory` is positive and larger than one sequence" + f" (about {room.sequence:.2f} GiB)",
            f"重新启动：`Available KV cache memory` 为正且大于一个序列（约 {room.sequence:.2f} GiB）",
        ),
        confidence=STATED if room.weights is not None else 0.8,
    )


def _unknown_weights(case: Case) -> list[Fix]:
    return [
        Fix(
            Words(
                "see who holds the device first; stop what is not needed",
                "先看谁占用了设备，结束不需要的进程",
            ),
            "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
        ),
        Fix(Words("take 4-bit or 8-bit weights of this model", "改用该模型的 4 位或 8 位权重")),
        Fix(Words("split the model over two cards", "用两张卡切分模型"), flag(case, "split", 2)),
        Fix(
            Words("see what the weights need on this card first", "先看权重在这张卡上需要多少"),
            f"headway plan {case.launch.model}" if case.launch.model else None,
        ),
    ]


def cap_too_small(case: Case) -> Found | None:
    """The smallest share is (weights + activations + one sequence) / total."""
    room = room_of(case)
    if room is None or room.fault != "cap":
        return None
    least = room.least if room.least is not None else (0.9 if not case.device.is_cpu else 0.7)
    alone = room.foreign < _FOREIGN_GIB or room.total is None
    highest = 0.9 if alone else round_down((room.total - room.foreign - 0.5) / room.total) if room.total else 0.9
    wanted = max(least, highest if not case.device.is_cpu else round_up(least + 0.05))
    terms = room.sum()
    needs = f"The model needs at least {least:g} of it" if room.least is not None else "The total of the device is not in the log"
    needs_zh = f"该模型至少需要 {least:g}" if room.least is not None else "日志中没有设备总量"
    return Found(
        cause=Words(
            f"{flag(case, 'share')} {room.share:g} is a cap on the whole device, not the part to spare: {terms.en}. {needs};"
            " a smaller value, or a larger card, is not the answer.",
            f"{flag(case, 'share')} {room.share:g} 是对整个设备的上限，而不是“留出多少”：{terms.zh}。{needs_zh}；调得更小或换更大的卡都不对。",
        ),
        evidence=room.quotes(case),
        fixes=[
            Fix(
                Words(
                    f"raise the cap to at least {least:g}; {wanted:g} leaves the rest to the cache"
                    + (", since nothing else is on the device" if alone else ""),
                    f"把上限提高到至少 {least:g}；设为 {wanted:g} 时其余都留给缓存",
                ),
                flag(case, "share", f"{wanted:g}"),
            )
        ],
        verify=Words(
            "start again: `Available KV cache memory` is positive, the number of blocks above 0",
            "重新启动：`Available KV cache memory` 为正，缓存块数大于 0",
        ),
        confidence=STATED if room.total is not None and room.weights is not None else 0.8,
    )


RULES: Final = (
    Rule(
        id="O1",
        title=Words("No room for cache blocks", "没有空间放 KV 缓存块"),
        symptoms=Words(
            "`No available memory for the cache blocks`, `# GPU blocks: 0`, a negative `Available KV cache memory`",
            "`No available memory for the cache blocks`、`# GPU blocks: 0`、`Available KV cache memory` 为负",
        ),
        why=Words(
            "the cap (share x total) is used up by weights and activations before any block", "上限（份额 x 总量）在放入任何块之前已被权重和激活用完"
        ),
        needs=Words("total, share, weights, activation peak, other processes", "总量、份额、权重、激活峰值、其他进程"),
        remedy=Words(
            "by the largest term: lighter weights or more cards, a smaller step, a larger share, or the other process ended",
            "看哪一项最大：更轻的权重或更多的卡、更小的单步、更大的份额，或结束其他进程",
        ),
        check=Words("`Available KV cache memory` positive and larger than one sequence", "`Available KV cache memory` 为正且大于一个序列"),
        judge=no_room,
        sees=(NO_BLOCKS, BESIDE_TORCH, *HEADWAY_SIGHTS),
    ),
    Rule(
        id="O10",
        title=Words("The memory share is too low", "显存份额设得太低"),
        symptoms=Words("no cache blocks, with a small share and small weights", "没有缓存块，而份额和权重都很小"),
        why=Words("the share is read as what to save; it is a cap on the total", "份额被理解为“要省下多少”，其实它是总量的上限"),
        needs=Words("total, share, weights", "总量、份额、权重"),
        remedy=Words("raise it to (weights + activations + one sequence) / total or more", "提高到（权重 + 激活 + 一个序列）/ 总量 或以上"),
        check=Words("blocks above 0", "块数大于 0"),
        judge=cap_too_small,
        sees=(NO_BLOCKS,),
    ),
)
