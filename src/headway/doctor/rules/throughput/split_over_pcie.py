"""The model is split over GPUs that have only PCIe between them (T12)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.metrics import scrapes_of
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

PCIE_ONLY: Final = sight("PCIe-only GPUs", "No NVLink", "no NVLink", "GPU P2P capability or P2P test failed")
MEASURED: Final = sight(
    *(f"{name}{sign}{size}" for name in ("tp", "TP", "tensor_parallel_size", "tensor-parallel-size") for sign in ("=", " ", ": ") for size in (1, 2, 4, 8)),
    pattern=r"(?i)\b(?:tp|tensor[-_ ]parallel(?:[-_ ]size)?)[ =_:]*\d+\D{1,40}?\d+(?:\.\d+)?(?= ?tok)",
)

_SCALING: Final = 1.3
_LINKED: Final = re.compile(r"\bNV\d+\b|NVSwitch|XGMI|(?<!no )(?<!without )NVLink", re.IGNORECASE)
_PATHS: Final = re.compile(r"\b(?:PIX|PXB|PHB|NODE|SYS)\b")
_RATE: Final = re.compile(r"(?i)(?:tp|tensor[-_ ]parallel(?:[-_ ]size)?)[ =_:]*(\d+)\D{1,40}?(\d+(?:\.\d+)?)(?= ?tok)")
_TP: Final = ("tp", "tp_size", "tensor_parallel", "tensor_parallel_size", "gpus")
_RATES: Final = ("tokens_per_s", "tok_per_s", "tok/s", "tokens/s", "out_tok_per_s", "output_tok_per_s", "gen_tok_per_s", "throughput", "tps", "output_tps", "throughput_tok_s")


def split_over_pcie(case: Case) -> Found | None:
    tp = int(case.launch.number("tensor_parallel_size") or 1)
    topology, said = case.context.text("host.topology"), case.log.first(PCIE_ONLY)
    if tp < 2 or _LINKED.search(topology) or (not topology and said is None):
        return None
    scaling = _scaling(case)
    if scaling is None and not complains_of(case.context, "throughput"):
        return None
    if scaling is not None and scaling.times >= _SCALING * (scaling.gpus / 2):
        return None
    measured = f" Measured: {scaling.gpus} GPUs give {scaling.times:.2f} x the speed of one ({scaling.many:g} against {scaling.one:g} tokens/s)." if scaling else ""
    measured_zh = f"实测 {scaling.gpus} 张卡只有单卡的 {scaling.times:.2f} 倍（{scaling.many:g} 对 {scaling.one:g} tokens/s）。" if scaling else ""
    paths = ", ".join(sorted(set(_PATHS.findall(topology)))) or (topology[:60] if topology and "\n" not in topology else "")
    links, links_zh = (f" (no NVLink; {paths})", f"（没有 NVLink；{paths}）") if paths else (" (no NVLink)", "（没有 NVLink）")
    return Found(
        cause=Words(
            f"The model is split over {tp} GPUs that are connected by PCIe only{links}: each layer exchanges activations twice and waits for it.{measured}",
            f"模型切分到 {tp} 张仅通过 PCIe 连接的 GPU 上{links_zh}：每一层都要交换两次激活并等待。{measured_zh}",
        ),
        evidence=[q for q in (scaling.quote if scaling else None, said.quote() if said else None, case.context.quote("host.topology") if topology else None) if q],
        fixes=[
            Fix(Words(f"split by layers instead: {tp} stages exchange activations once per stage", f"改为按层切分：{tp} 个阶段，每阶段只交换一次激活"), f"--tensor-parallel-size 1 --pipeline-parallel-size {tp}"),
            Fix(Words(f"or, if the model fits one GPU, run {tp} copies", f"或者，如果单卡放得下模型，运行 {tp} 个副本"), f"--tensor-parallel-size 1 --data-parallel-size {tp}"),
        ],
        verify=Words("the same benchmark before and after: tokens/s rises; nvidia-smi topo -m shows how the GPUs are connected", "同一基准测试前后对比：tokens/s 上升；nvidia-smi topo -m 显示 GPU 连接方式"),
        confidence=0.85 if scaling else 0.6,
        weight="degraded",
    )


@dataclass(frozen=True, slots=True)
class _Scaling:
    """Tokens/s of one GPU and of the split over `gpus`."""

    gpus: int
    one: float
    many: float
    quote: Quote

    @property
    def times(self) -> float:
        return self.many / self.one


def _scaling(case: Case) -> _Scaling | None:
    """Speed of the split against one GPU: a table with a column of sizes, or text such as `tp=1 41 tok/s, tp=2 44 tok/s`."""
    rates: dict[int, tuple[float, Quote]] = {}
    for size, rate, quote in _rates(case):
        rates[size] = (rate, quote)
    if 1 not in rates or len(rates) < 2 or not rates[1][0]:
        return None
    most = max(rates)
    rate, quote = rates[most]
    if quote.line is None:  # a context's text may be long: what counts, first
        quote = Quote(quote.source, None, f"tp=1: {rates[1][0]:g} tok/s, tp={most}: {rate:g} tok/s")
    return _Scaling(most, rates[1][0], rate, quote)


def _rates(case: Case) -> Iterator[tuple[int, float, Quote]]:
    for row in case.requests:
        size, rate = row.number(*_TP), row.number(*_RATES)
        if size and rate and size == int(size):
            yield int(size), rate, row.quote
    for hit in case.log.hits(MEASURED):
        for found in _RATE.finditer(hit.line.text):
            yield int(found[1]), float(found[2]), hit.quote()
    texts = [(str(probe), f"host.probes.{index}") for index, probe in enumerate(case.context.items("host.probes"))]
    for scrape in scrapes_of(case.context):
        for name, series in scrape.families.items():
            for one in series:
                named = f"tp={one.labels['tp']} {name}" if "tp" in one.labels else name
                if re.search(r"(?i)(?:tp|parallel(?:_size)?)[_=]?\d", named):
                    texts.append((f"{named} {one.value:g} tok/s", f"metrics.{scrape.index}"))
    for text, path in texts:
        for found in _RATE.finditer(text):
            yield int(found[1]), float(found[2]), case.context.quote(path)


RULES: Final = (
    Rule(
        id="T12",
        title=Words("Tensor parallel over PCIe", "张量并行走 PCIe"),
        symptoms=Words("no NVLink between the GPUs, scaling below 1.3 x", "GPU 之间没有 NVLink，扩展比低于 1.3"),
        why=Words("each layer exchanges activations and waits for the slow link", "每层都要交换激活并等待慢速链路"),
        needs=Words("nvidia-smi topo -m, speed with one GPU and with all", "nvidia-smi topo -m、单卡与多卡的速度"),
        remedy=Words("pipeline or data parallel", "流水线并行或数据并行"),
        check=Words("the same benchmark before and after", "同一基准测试前后对比"),
        judge=split_over_pcie,
        sees=(PCIE_ONLY, MEASURED),
    ),
)
