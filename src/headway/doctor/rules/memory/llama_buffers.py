"""Buffers that llama.cpp could not allocate on a device: of weights, or of the KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.words import Words

NO_CACHE: Final = sight("failed to allocate buffer for kv cache", "failed to allocate compute", "failed to initialize the context")
NO_WEIGHTS: Final = sight(
    "unable to allocate",
    "buffer for tensors",
    pattern=r"unable to allocate (?P<device>(?!CPU\b)\w+) buffer|failed to allocate (?!CPU\b)\w+ buffer for tensors",
)
TRIED: Final = sight(
    "on device",
    "failed to allocate",
    pattern=r"allocating (?P<mib>[\d.]+) MiB on device|failed to allocate (?!CPU\b)\w+ buffer of size (?P<bytes>\d+)",
)
FREE: Final = sight("MiB free", pattern=r"using device (?P<device>\w+) .*- (?P<mib>\d+) MiB free")
HELD: Final = sight("model buffer size", pattern=r"(?!CPU)\b(?P<device>[A-Z]\w*) model buffer size = +(?P<mib>[\d.]+) MiB")
LAYERS: Final = sight("layers to GPU", pattern=r"offloaded (?P<offloaded>\d+)/(?P<all>\d+) layers to GPU")
CONTEXT: Final = sight("n_ctx", pattern=r"\bn_ctx +=? ?(?P<tokens>\d+)")
SIGHTS: Final = (NO_CACHE, NO_WEIGHTS, TRIED, FREE, HELD, LAYERS, CONTEXT)

_CACHE_AND_COMPUTE: Final = 1024.0  # MiB left for KV cache and compute buffers when weights are placed
_COMPUTE: Final = 512.0  # MiB left for compute buffers when the cache is placed
_STEP: Final = 256  # llama.cpp pads a context to 256 tokens


@dataclass(frozen=True, slots=True)
class Buffer:
    """MiB. `asked`: what could not be had; `free`: of the device before anything was placed."""

    hit: Hit
    asked: float | None
    free: float | None


def refused_buffer(case: Case) -> Buffer | None:
    """The last device buffer that was refused."""
    hit = case.log.last(TRIED)
    free = {one["device"]: one.number("mib") for one in case.log.hits(FREE)}  # a restart prints them again
    if hit is None:
        return None
    asked = hit.number("mib") if hit["mib"] else hit.number("bytes") / 2**20
    return Buffer(hit, asked, sum(free.values()) if free else None)


def cache_that_fits(case: Case) -> Found | None:
    """llama.cpp: the refused buffer is the cache of n_ctx tokens; what the weights leave holds fewer."""
    hit = case.log.first(NO_CACHE)
    if hit is None or case.log.sees(NO_WEIGHTS):
        return None
    buffer = refused_buffer(case)
    context = case.log.last(CONTEXT)
    length = int(context.number("tokens")) if context else int(case.launch.number("ctx_size") or case.launch.number("c") or 0)
    held = sum({one["device"]: one.number("mib") for one in case.log.hits(HELD)}.values())
    if buffer is None or buffer.asked is None or not length:
        fits, sizes, sizes_zh = 0, "", ""
    else:
        room = None if buffer.free is None else buffer.free - held - _COMPUTE
        fits = 0 if room is None else max(0, int(length * room / buffer.asked)) // _STEP * _STEP
        sizes = (
            f" ({buffer.asked:.0f} MiB"
            + (f"; the weights of {held:.0f} MiB leave {room:.0f} of {buffer.free:.0f} MiB" if room is not None else "")
            + ")"
        )
        sizes_zh = (
            f"（{buffer.asked:.0f} MiB"
            + (f"；{held:.0f} MiB 的权重之后，{buffer.free:.0f} MiB 中还剩 {room:.0f} MiB" if room is not None else "")
            + "）"
        )
    fits = fits if 0 < fits < length else max(_STEP, length // 4 // _STEP * _STEP) if length else 8192
    return Found(
        cause=Words(
            f"The KV cache{f' of {length} tokens' if length else ''} does not fit the device beside the weights{sizes}. The file is whole; downloading it again changes nothing.",
            f"{f'{length} 个 token 的 ' if length else ''}KV 缓存与权重放不进同一设备{sizes_zh}。文件是完整的，重新下载没有用。",
        ),
        evidence=[one.quote() for one in (hit, buffer.hit if buffer else None, context) if one is not None],
        fixes=[
            Fix(Words(f"a context of {fits} tokens", f"上下文设为 {fits} 个 token"), f"-c {fits}"),
            Fix(Words("keep keys and values in 8 bits (half the cache)", "KV 用 8 位保存（缓存减半）"), "-fa on -ctk q8_0 -ctv q8_0"),
        ],
        verify=Words(
            "start again: the log shows `KV buffer size` and `server is listening`", "重新启动：日志出现 `KV buffer size` 与 `server is listening`"
        ),
        confidence=STATED if buffer else 0.85,
    )


def weights_that_fit(case: Case) -> Found | None:
    """llama.cpp: layers that fit = (free - 1 GiB for cache and compute) / bytes per layer."""
    hit = case.log.first(NO_WEIGHTS)
    if hit is None:
        return None
    buffer, layers = refused_buffer(case), case.log.last(LAYERS)
    evidence = [hit.quote(), *([buffer.hit.quote()] if buffer else []), *([layers.quote()] if layers else [])]
    fixes = []
    en, zh = "The weights do not fit the device", "权重放不进设备"
    if buffer is not None and buffer.asked is not None:
        en += f": one buffer of {buffer.asked:.0f} MiB ({buffer.asked / 1024:.2f} GiB) was asked for"
        zh += f"：申请了一个 {buffer.asked:.0f} MiB（{buffer.asked / 1024:.2f} GiB）的缓冲区"
        if buffer.free is not None:
            en, zh = en + f", {buffer.free:.0f} MiB are free", zh + f"，而空闲 {buffer.free:.0f} MiB"
            evidence += [free.quote() for free in case.log.hits(FREE)]
        if layers is not None and buffer.free is not None:
            per_layer = buffer.asked / max(1.0, layers.number("offloaded"))
            fitting = max(0, int((buffer.free - _CACHE_AND_COMPUTE) / per_layer))
            en += f"; a layer takes {per_layer:.0f} MiB, so {fitting} of {layers['all']} fit beside 1 GiB for cache and buffers"
            zh += f"；每层 {per_layer:.0f} MiB，留 1 GiB 给缓存与缓冲区后可放 {fitting}/{layers['all']} 层"
            fixes.append(
                Fix(
                    Words(f"place {fitting} layers on the device, the rest on the CPU", f"把 {fitting} 层放到设备上，其余留在 CPU"),
                    f"--n-gpu-layers {fitting}",
                )
            )
    fixes += [] if fixes else [Fix(Words("let the program place as many layers as fit", "让程序按可用显存放置层数"), "--fit on")]
    fixes.append(Fix(Words("take a file with fewer bits per weight, or a smaller model", "换每权重位数更少的文件，或更小的模型")))
    return Found(
        cause=Words(
            en + ". The file is whole, and a shorter context does not help: no cache exists yet.",
            zh + "。文件是完整的；缩短上下文没有用，此时还没有缓存。",
        ),
        evidence=evidence,
        fixes=fixes,
        verify=Words(
            "start again: `load_tensors: offloaded` and then `server is listening`",
            "重新启动：出现 `load_tensors: offloaded` 以及 `server is listening`",
        ),
        confidence=STATED,
    )
