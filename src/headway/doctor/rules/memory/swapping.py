"""The model or its cache lives partly in swap (O16)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.metrics import grown, quote_metrics, scrapes_of
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.memory.sizes import whole_weights_gib
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SWAP_USED: Final = sight("Swap:", pattern=r"^Swap:\s+(?P<all>[\d.]+)(?P<unit>[KMG])i?B?\s+(?P<used>[\d.]+)(?P<used_unit>[KMG])")
FAULTS: Final = sight(
    "major page faults",
    "majflt",
    "pgmajfault",
    "major faults",
    pattern=r"(?:major page faults|majflt(?:/s)?|pgmajfault|major faults)\D{0,12}(?P<count>\d[\d,]*)|(?P<before>\d[\d,]*) major (?:page )?faults",
)
_UNITS: Final = {"K": 2**-20, "M": 2**-10, "G": 1.0}
_RATES: Final = re.compile(r"\b(?:si|swap[_ ]?in\w*|so|swap[_ ]?out\w*|pswpin\w*|pswpout\w*)['\"]?\s*[:= ]\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_USED: Final = re.compile(
    r"\bswap(?:[_ ]?used(?:_gib)?|\s+used)['\"]?\s*[:= ]\s*(\d+(?:\.\d+)?)\s*(GiB|GB|Gi|MiB|MB)?|(\d+(?:\.\d+)?)\s*(GiB|GB|Gi)\s+(?:of\s+)?swap(?:\s+in\s+use|\s+used)",
    re.IGNORECASE,
)
_MAJOR: Final = re.compile(
    r"maj(?:or)?[_ ]?(?:page[_ ]?)?(?:fault|flt)\w*(?:[_/]s)?['\"]?\s*[:= ]\s*(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s+major\s+(?:page\s+)?faults",
    re.IGNORECASE,
)
_PLACES: Final = ("host.io", "host.probes", "host.memory", "host.swap", "host.swap_used_gib")
_COUNTERS: Final = (
    ("process_major_page_faults", "major_page_faults", "node_vmstat_pgmajfault", "vmstat_pgmajfault"),
    ("node_vmstat_pswpin", "vmstat_pswpin", "swap_in_pages"),
)
_FEW: Final = 1000.0  # major faults of an ordinary start
_MUCH_GIB: Final = 1.0


def swaps(case: Case) -> Found | None:
    """Swap in use, and pages that come back from it (si, so or major faults above zero)."""
    used, moves, evidence = _swap(case)
    if moves <= 0 or (used is not None and used < _MUCH_GIB):
        return None
    weights = case.memory.weights.value if case.memory.weights else whole_weights_gib(case)
    ram = case.context.number("host.cgroup.memory_max_gib") or case.context.number("host.ram_gib")
    cache = case.context.number("env.VLLM_CPU_KVCACHE_SPACE")
    rates = [sample.generation_rate for sample in case.load if sample.generation_rate]
    speed = (
        f" Generation fell from {max(rates):.1f} to {rates[-1]:.1f} tokens/s."
        if rates and rates[-1] < 0.5 * max(rates)
        else f" Generation runs at {rates[-1]:.1f} tokens/s."
        if rates
        else ""
    )
    speed_zh = (
        f"生成速度从 {max(rates):.1f} 降到 {rates[-1]:.1f} tokens/s。"
        if rates and rates[-1] < 0.5 * max(rates)
        else f"生成速度 {rates[-1]:.1f} tokens/s。"
        if rates
        else ""
    )
    terms = [f"weights {weights:.1f}" if weights else "", f"KV cache {cache:g}" if cache else ""]
    sum_ = f" ({' + '.join(filter(None, terms))} GiB against {ram:g} GiB of RAM)" if ram and any(terms) else ""
    room = int(ram - (weights or 0) - 2) if ram else 0
    smaller = max(1, min(room, int((cache or 4) // 2)))
    amount = f"{used:.1f} GiB of swap are in use" if used is not None else "Swap is in use"
    amount_zh = f"已使用交换空间 {used:.1f} GiB" if used is not None else "正在使用交换空间"
    return Found(
        cause=Words(
            f"{amount} and pages keep coming back from it ({moves:g} pages or faults in what was measured): weights and cache do not fit RAM{sum_}, so every step reads the disk.{speed} More threads do not help.",
            f"{amount_zh}，且页面不断换入换出（测得 {moves:g} 页或 fault）：权重和缓存放不进内存{sum_}，每一步都在读磁盘。{speed_zh}增加线程没有用。",
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words("a smaller KV cache", "减小 KV 缓存"),
                f"VLLM_CPU_KVCACHE_SPACE={smaller}" if case.launch.program != "headway" else f"--kv-cache-memory-bytes {smaller << 30}",
            ),
            Fix(Words("or a smaller or more quantised model", "或更小、量化更多的模型")),
            Fix(Words("then serve without swap, so that a shortage shows at start", "之后关闭交换，让内存不足在启动时就暴露"), "swapoff -a"),
        ],
        verify=Words("`vmstat 1`: si and so are 0 while requests run", "`vmstat 1`：请求运行时 si、so 为 0"),
        confidence=0.9,
        weight="degraded",
    )


def _swap(case: Case) -> tuple[float | None, float, list[Quote]]:
    used, moves, evidence = None, 0.0, []
    if (hit := case.log.last(SWAP_USED)) is not None:
        used = hit.number("used") * _UNITS[hit["used_unit"]]
        evidence.append(hit.quote())
    if (hit := case.log.last(FAULTS)) is not None:
        moves = hit.number("count") if hit["count"] else hit.number("before")
        evidence.append(hit.quote())
    for path in _PLACES:
        text = _text(case, path)
        amounts = [_first(found) * (2**-10 if (found[2] or "").startswith("M") else 1.0) for found in _USED.finditer(text)]
        rates = [_first(found) for found in (*_RATES.finditer(text), *_MAJOR.finditer(text))]
        if amounts or rates:
            used = max([*amounts, used or 0.0]) if amounts else used
            moves = max([*rates, moves])
            evidence.append(case.context.quote(path))
    scrapes = scrapes_of(case.context)
    if len(scrapes) > 1:
        for names in _COUNTERS:
            moved = grown(scrapes[0].total(*names), scrapes[-1].total(*names)) or 0.0
            if moved > max(moves, _FEW):
                moves = moved
                evidence.append(quote_metrics(case.context, scrapes[-1], *names))
        total, free = (
            scrapes[-1].total("node_memory_SwapTotal_bytes", "memory_SwapTotal_bytes"),
            scrapes[-1].total("node_memory_SwapFree_bytes", "memory_SwapFree_bytes"),
        )
        if total is not None and free is not None and total > free:
            used = (total - free) / 2**30
    return used, moves, evidence


def _text(case: Case, path: str) -> str:
    """The value with its name before it, so that `used_gib` of a swap is seen as swap."""
    value = case.context.get(path)
    if value is None:
        return ""
    if path == "host.swap" and isinstance(value, dict):
        return " ".join(f"swap_{name.removeprefix('swap_')}: {member}" for name, member in value.items())
    return f"{path.rpartition('.')[2]}: {value}"


def _first(found: re.Match[str]) -> float:
    return next((float(group) for group in found.groups() if group and re.fullmatch(r"[\d.]+", group)), 0.0)


RULES: Final = (
    Rule(
        id="O16",
        title=Words("Swapping", "正在换页"),
        symptoms=Words("tokens/s collapse, major faults, swap in use", "tokens/s 骤降、major fault、使用交换空间"),
        why=Words("weights and cache are larger than RAM", "权重加缓存大于内存"),
        needs=Words("`vmstat 1`, `free -h`", "`vmstat 1`、`free -h`"),
        remedy=Words("a smaller cache or model, no swap", "更小的缓存或模型，不用交换"),
        check=Words("`vmstat` si and so are zero", "`vmstat` 的 si、so 为零"),
        judge=swaps,
        sees=(SWAP_USED, FAULTS),
    ),
)
