"""Quantised and not faster: weight-only formats at a large batch (Q9), FP8 as weights only (Q10)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SLOW_KERNEL: Final = sight(
    "quantization is not fully optimized yet", pattern=r"(?<![\w+.-])(?P<method>[\w+-]+(?:\.\w[\w+-]*)*) quantization is not fully optimized yet"
)
FAST_KERNEL: Final = sight("during runtime. Using", pattern=r"is convertible to (?P<kernel>\w+) during runtime\. Using")
WEIGHTS_ONLY: Final = sight(
    "does not have native support for FP8",
    "Weight-only FP8 compression",
    pattern=r"not have native support for FP8 computation|Weight-only FP8 compression will be used",
)
COMPARED: Final = sight(
    "tok/s", "tokens/s", "req/s",
    # a name of each kind and two figures, in whatever order
    pattern=r"(?i)^(?=.*?(?<![a-z])(?:awq|gptq|int4|4-bit|quantized|marlin)\b)(?=.*?(?<![a-z])(?:bf16|fp16|bfloat16|float16|unquantized|16-bit)\b)"
    r"(?>.*?(?<![\w-])\d[\d.,]*).*?(?<![\w-])\d",
)  # fmt: skip
_WEIGHT_ONLY: Final = ("awq", "gptq", "auto_awq", "auto_gptq", "marlin", "moe_wna16", "gguf", "bitsandbytes", "squeezellm", "inc", "auto-round")
_MANY: Final = 32
_NATIVE: Final = 89
_MARLIN_FROM: Final = 80


def weight_only_at_large_batch(case: Case) -> Found | None:
    """4-bit weights save reading, which is what a small batch waits for; a large one waits for arithmetic, and that is 16 bit."""
    method = case.launch.value("quantization").replace("None", "") or case.model.claimed
    compared = case.log.first(COMPARED)
    if not method.startswith(_WEIGHT_ONLY) or (compared is None and not complains_of(case.context, "throughput")):
        return None
    running = max((sample.running or 0 for sample in case.load), default=0)
    slow, fast = case.log.first(SLOW_KERNEL), case.log.first(FAST_KERNEL)
    plain = slow is not None and fast is None and not method.endswith("_marlin")
    if running < _MANY and not plain and compared is None:
        return None
    gpu = case.device.gpu(0)
    fixes = []
    if plain:
        fixes.append(
            Fix(
                Words(
                    f"let the engine choose the faster kernel: drop --quantization {method}"
                    + ("" if gpu is None or gpu.capability is None or gpu.capability >= _MARLIN_FROM else "; this card is too old for it"),
                    f"让引擎选择更快的内核：去掉 --quantization {method}",
                )
            )
        )
    native = gpu is not None and gpu.capability is not None and gpu.capability >= _NATIVE
    fixes.append(
        Fix(
            Words(
                "for throughput take a format that also computes in 8 bits: "
                + ("FP8" if native else "int8 W8A8" + (" (FP8 from capability 8.9)" if gpu is None else "")),
                "若求吞吐，选也以 8 位计算的格式："
                + ("FP8" if native else "int8 W8A8" + ("（计算能力 8.9 起可用 FP8）" if gpu is None else "")),
            )
        )
    )
    fixes.append(Fix(Words("or the unquantized model if it fits: at this batch it is as fast", "若放得下就用未量化模型：在这个批量下一样快")))
    sample = max(case.load, key=lambda one: one.running or 0) if case.load else None
    at = f" With {running:.0f} requests running the arithmetic decides, and it is done in 16 bits after unpacking." if running >= _MANY else ""
    at_zh = f"同时运行 {running:.0f} 个请求时由计算决定，而计算是解包后以 16 位进行的。" if running >= _MANY else ""
    kernel = f" Besides, the plain {method} kernel is used, not the Marlin one." if plain else ""
    kernel_zh = f"此外用的是普通 {method} 内核，而不是 Marlin。" if plain else ""
    return Found(
        cause=Words(
            f"{method} compresses weights only: it saves reading them, which is what small batches wait for.{at}{kernel} It is working as it should.",
            f"{method} 只压缩权重：省下的是读取权重的时间，而那正是小批量的瓶颈。{at_zh}{kernel_zh}它工作正常。",
        ),
        evidence=[
            *([compared.quote()] if compared is not None else []),
            *([sample.quote] if sample is not None and running >= _MANY else []),
            *([slow.quote()] if plain and slow is not None else []),
            *([case.launch.config["quantization"].quote] if "quantization" in case.launch.config else []),
        ],
        fixes=fixes,
        verify=Words(
            "tokens/s of both formats at the same load, batch 1 and the planned batch", "同样负载下两种格式的 tokens/s，分别测批量 1 与计划批量"
        ),
        confidence=0.7,
        weight="degraded",
    )


def fp8_as_weights_only(case: Case) -> Found | None:
    hit = case.log.first(WEIGHTS_ONLY)
    gpu = next((one for one in case.device.gpus if one.capability is not None), None)
    is_fp8 = "fp8" in case.launch.value("quantization") or case.model.claimed == "fp8"
    if hit is None and not (is_fp8 and gpu is not None and gpu.capability is not None and gpu.capability < _NATIVE):
        return None
    complained = complains_of(case.context, "throughput")
    name = (
        f"{gpu.name or 'The card'} (capability {gpu.capability // 10}.{gpu.capability % 10})" if gpu is not None and gpu.capability else "This card"
    )
    name_zh = f"{gpu.name or '该卡'}（计算能力 {gpu.capability // 10}.{gpu.capability % 10}）" if gpu is not None and gpu.capability else "该卡"
    return Found(
        cause=Words(
            f"{name} has no FP8 arithmetic, which begins at 8.9 (Ada, Hopper; not only H100): FP8 is weight-only here: it halves the memory, and the Marlin kernel computes in 16 bits. That is fine, but it brings none of the speed of FP8.",
            f"{name_zh} 没有 FP8 运算（自 8.9 起，Ada、Hopper，不只 H100）：FP8 在这里只压缩权重（weight-only）：显存减半，但由 Marlin 内核以 16 位计算。这没有问题，只是没有 FP8 的速度。",
        ),
        evidence=[*([hit.quote()] if hit is not None else []), *([case.context.quote(f"{gpu.path}.capability")] if gpu is not None else [])],
        fixes=[
            Fix(Words("for speed on this card take int8 W8A8 (capability 7.5 and newer)", "要在这张卡上提速，用 int8 W8A8（计算能力 7.5 起）")),
            Fix(
                Words("or a card of capability 8.9 or newer; for memory alone keep it as it is", "或换计算能力 8.9 以上的卡；若只为省显存则保持现状")
            ),
        ],
        verify=Words("tokens/s of FP8 and of bfloat16 at the same load on this card", "在这张卡上同样负载下 FP8 与 bfloat16 的 tokens/s"),
        confidence=0.75 if complained else 0.4,
        weight="degraded" if complained else "remark",
    )


RULES: Final = (
    Rule(
        id="Q9",
        title=Words("Weight-only quantisation is not faster at a large batch", "仅权重量化在大批量下不会更快"),
        symptoms=Words("AWQ or GPTQ as fast as, or slower than, 16 bit with many requests running", "请求多时 AWQ、GPTQ 与 16 位相当甚至更慢"),
        why=Words("large batches wait for arithmetic, which stays 16 bit", "大批量受计算限制，而计算仍是 16 位"),
        needs=Words("running requests, format", "运行中请求数、格式"),
        remedy=Words("a format with 8-bit arithmetic, or 16 bit", "以 8 位计算的格式，或 16 位"),
        check=Words("tokens/s of both at the same load", "同样负载下两者的 tokens/s"),
        judge=weight_only_at_large_batch,
        sees=(SLOW_KERNEL, FAST_KERNEL, COMPARED),
    ),
    Rule(
        id="Q10",
        title=Words("FP8 runs as weights only on this card", "该卡上 FP8 仅用于权重"),
        symptoms=Words(
            "`Weight-only FP8 compression will be used leveraging the Marlin kernel`",
            "`Weight-only FP8 compression will be used leveraging the Marlin kernel`",
        ),
        why=Words("FP8 arithmetic begins at capability 8.9", "FP8 运算自计算能力 8.9 起"),
        needs=Words("capability of the card", "显卡的计算能力"),
        remedy=Words("int8 W8A8 for speed; nothing for memory", "求速度用 int8 W8A8；只求省显存则无需改动"),
        check=Words("tokens/s of both at the same load", "同样负载下两者的 tokens/s"),
        judge=fp8_as_weights_only,
        sees=(WEIGHTS_ONLY,),
    ),
)
