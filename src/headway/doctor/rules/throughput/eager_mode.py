"""Graphs are off although a GPU would use them (T5)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.load import LoadShape, shape_of
from headway.doctor.facts.processor_use import known_gpu, on_cpu
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SAID_SO: Final = sight("Cudagraph is disabled under eager mode", "CUDA graph is disabled", "To use CUDA graph, set", "Enforce eager set")

_SMALL_BATCH: Final = 64  # above it a step computes longer than the host needs to launch its kernels
_NEAR_ROOF: Final = 0.75
_GIB: Final = 2**30


def eager_mode(case: Case) -> Found | None:
    eager = _eager(case)
    shape = shape_of(case.load)
    if eager is None or on_cpu(case.log, case.context, case.device) or (case.exceptions.first and not case.startup.ready):
        return None
    complaint = complains_of(case.context, "throughput")
    share = _share_of_roof(case, shape) if shape else None
    if shape is not None and shape.running > _SMALL_BATCH and not complaint:
        return None
    told = shape is not None and shape.generation_rate
    confidence = 0.9 if share is not None and share[0] < 0.6 else 0.75 if told else 0.6 if complaint else 0.45
    if share is not None and share[0] >= _NEAR_ROOF:
        confidence = 0.4
    speed, speed_zh = _speed(shape, share)
    name = "disable_cuda_graph" if case.launch.program == "sglang" else "enforce_eager"
    seqs = case.launch.flags.get("max_num_seqs")
    small = seqs is not None and seqs.value.isdigit() and int(seqs.value) <= 32
    flag, restart = ("--disable-cuda-graph", None) if case.launch.program == "sglang" else ("--enforce-eager", "--no-enforce-eager")
    fixes = [Fix(Words(f"start without {flag}, so that CUDA graphs are captured", f"启动时去掉 {flag}，让 CUDA graph 被捕获"), _command_without(case, flag) or restart)]
    if small and seqs is not None:
        fixes.append(
            Fix(
                Words(f"drop the tiny --max-num-seqs {seqs.value} as well; the default fits the device", f"同时去掉过小的 --max-num-seqs {seqs.value}；默认值与设备相配"),
            )
        )
    return Found(
        cause=Words(
            f"{name} is on, so every kernel of every step is launched from Python instead of one captured graph{speed}."
            " At small batches the launches, not the GPU, set the time per token; a larger card would not help.",
            f"启用了 {name}：每一步的每个 kernel 都由 Python 逐个启动，而不是一次重放 CUDA graph{speed_zh}。小批次下决定每个 token 耗时的是启动开销而不是 GPU；换更大的卡没有帮助。",
        ),
        evidence=[eager.quote, *([shape.middle.quote] if shape else [])],
        fixes=fixes,
        verify=Words(
            "after the restart the log shows `Graph capturing finished`; the time per token at batch 1 falls (vllm bench serve --max-concurrency 1)",
            "重启后日志出现 `Graph capturing finished`；批次为 1 时每 token 耗时下降（vllm bench serve --max-concurrency 1）",
        ),
        confidence=confidence,
        weight="degraded",
    )


def _eager(case: Case) -> Fact[str] | None:
    """The place that says that eager mode is on: a flag, the engine's configuration, or a warning."""
    for facts in (case.launch.flags, case.launch.config):
        fact = facts.get("enforce_eager")
        if fact and fact.value.lower() in ("true", "1"):
            return fact
        fact = facts.get("disable_cuda_graph")
        if fact and fact.value.lower() in ("true", "1"):
            return fact
    hit = case.log.first(SAID_SO)
    return Fact("True", hit.quote()) if hit else None


def _share_of_roof(case: Case, shape: LoadShape) -> tuple[float, float] | None:
    """(share, roof): tokens/s of one sequence against bandwidth / weight bytes. None for sparse models and unknown cards."""
    gpu, weights = known_gpu(case.context), case.memory.weights
    if gpu is None or weights is None or not weights.value or not shape.per_request or "moe" in case.launch.model.lower():
        return None
    roof = gpu.bandwidth / (weights.value * _GIB)
    return shape.per_request / roof, roof


def _speed(shape: LoadShape | None, share: tuple[float, float] | None) -> tuple[str, str]:
    if shape is None or not shape.generation_rate:
        return "", ""
    each = shape.per_request or 0.0
    said = f": {shape.generation_rate:.0f} tokens/s with {shape.running:g} running, {each:.1f} per sequence"
    said_zh = f"：{shape.running:g} 个请求共 {shape.generation_rate:.0f} tokens/s，每个序列 {each:.1f}"
    if share:
        return said + f", {share[0]:.0%} of the {share[1]:.0f} that memory bandwidth allows", said_zh + f"，只有显存带宽上限 {share[1]:.0f} 的 {share[0]:.0%}"
    return said, said_zh


def _command_without(case: Case, flag: str) -> str | None:
    """The user's own command without the flag, when it is one."""
    words = case.launch.command.split()
    return " ".join(word for word in words if word != flag) if flag in words else None


RULES: Final = (
    Rule(
        id="T5",
        title=Words("Eager mode is left on", "eager 模式没有关闭"),
        symptoms=Words("`enforce_eager: True`, `Cudagraph is disabled under eager mode`, few tokens/s at small batches on a GPU", "`enforce_eager: True`、`Cudagraph is disabled under eager mode`，GPU 上小批次 tokens/s 低"),
        why=Words("each kernel is launched from Python; a captured graph launches all at once", "每个 kernel 由 Python 启动；捕获的 graph 可一次启动全部"),
        needs=Words("the flag, tokens/s, the batch, the card's bandwidth and the weights", "该参数、tokens/s、批次大小、显卡带宽和权重大小"),
        remedy=Words("drop `--enforce-eager`; on CPUs eager is fine", "去掉 `--enforce-eager`；在 CPU 上 eager 没有问题"),
        check=Words("time per token at batch 1 falls", "批次为 1 时每 token 耗时下降"),
        judge=eager_mode,
        sees=(SAID_SO,),
        explains=("T4",),
    ),
)
