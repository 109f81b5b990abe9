"""Answers got worse: an 8-bit cache without scales (Q11), too few bits or a poor calibration (Q13)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_SCALES: Final = sight(
    "scaling factor 1.0", "scaling factors of 1.0", "accuracy drop without", "uncalibrated q_scale",
    pattern=r"[Uu]sing KV cache scaling factor 1\.0|scaling factors of 1\.0|may cause (?:slight )?accuracy drop without (?:a )?(?:proper )?scaling factors?|uncalibrated q_scale 1\.0",
)  # fmt: skip
EVALUATION: Final = sight(
    "gsm8k", "GSM8K", "mmlu", "MMLU", "umanEval", "umaneval", "exact_match", "strict-match", "ccuracy", "erplexity", "hellaswag", "ceval", "C-Eval", "cmmlu", "pass@1", "eval: ", "ppl: ", "ppl=", " ppl ",
    pattern=r"(?i)(?:gsm8k|c?mmlu|humaneval|exact_match|strict-match|accuracy|perplexity|hellaswag|c-?eval|pass@1|\bppl\b|\bacc\b)\D.*\d",
)  # fmt: skip
_RESULT: Final = re.compile(r"(?<![\w.])(\d+\.\d+)(?!\.?\d|\w)\s?%?|(?<![\w.])(\d+)\s?%")
_BENCHMARK: Final = re.compile(r"(?i)gsm8k|c?mmlu|humaneval|perplexity|hellaswag|c-?eval|pass@1|\bppl\b|exact_match|accuracy|\bacc\b")
_DROP: Final = 0.02


@dataclass(frozen=True, slots=True)
class Drop:
    """Two results of one evaluation: `now` is of this server. Higher is better unless `lower_is_better`."""

    hit: Hit
    now: float
    before: float
    lower_is_better: bool

    @property
    def is_one(self) -> bool:
        worse = self.now - self.before if self.lower_is_better else self.before - self.now
        return worse > _DROP * max(abs(self.before), 1e-9)


def drop_of(case: Case) -> Drop | None:
    """The first evaluation line that compares two results, of which this server's is the worse."""
    for hit in case.log.hits(EVALUATION):
        text = hit.line.text[hit.match.start() :]
        results = list(_RESULT.finditer(text))
        if len(results) < 2:
            continue
        first, second = (float(found[1] or found[2]) for found in results[:2])
        if _names_reference(text[: results[0].start()]):
            first, second = second, first
        words = text.lower()
        drop = Drop(hit, first, second, "perplexity" in words or "ppl" in words)
        if drop.is_one:
            return drop
    return _over_two_lines(case)


def _over_two_lines(case: Case) -> Drop | None:
    """`mmlu 0.61 with fp8` and `mmlu 0.70 with auto`: one result a line, of the same benchmark."""
    single = [(hit, float(found[0][1] or found[0][2])) for hit in case.log.hits(EVALUATION) if len(found := list(_RESULT.finditer(hit.line.text))) == 1]
    for hit, now in single:
        for other, before in single:
            same = (one := _BENCHMARK.search(hit.line.text)) and (two := _BENCHMARK.search(other.line.text)) and one[0].lower() == two[0].lower()
            if same and _names_reference(other.line.text) and not _names_reference(hit.line.text):
                words = hit.line.text.lower()
                drop = Drop(hit, now, before, "perplexity" in words or "ppl" in words)
                if drop.is_one:
                    return drop
    return None


def _names_reference(head: str) -> bool:
    """`accuracy: bf16 0.83, this 0.71`: the first result is the unquantised one."""
    return any(
        word in head.lower() for word in ("bf16", "fp16", "bfloat16", "float16", "baseline", "reference", "unquantized", "original", "without", "auto", "16-bit", "default")
    )


def eight_bit_cache_without_scales(case: Case) -> Found | None:
    hit = case.log.first(NO_SCALES)
    if hit is None:
        return None
    drop = drop_of(case)
    complained = complains_of(case.context, "answer quality")
    flag = case.launch.flags.get("kv_cache_dtype") or case.launch.fact("kv_cache_dtype")
    cache = flag.value if flag is not None and flag.value != "auto" else "fp8"
    shown = f" The evaluation fell to {drop.now:g} from {drop.before:g} with the default cache." if drop else ""
    shown_zh = f"评测从默认缓存的 {drop.before:g} 变为 {drop.now:g}。" if drop else ""
    return Found(
        cause=Words(
            f"The KV cache is {cache} and the checkpoint brings no scales for it, so keys and values are stored with a scale of 1.0 and lose range and precision.{shown} Sampling settings do not repair that.",
            f"KV 缓存为 {cache}，而检查点没有对应的 scale，因此 K、V 以 1.0 的比例存储，损失范围和精度。{shown_zh}采样参数无法弥补。",
        ),
        evidence=[hit.quote(), *([drop.hit.quote()] if drop else []), *([flag.quote] if flag is not None else [])],
        fixes=[
            Fix(Words("keep the KV cache in 16 bits", "KV 缓存使用 16 位"), "--kv-cache-dtype auto"),
            Fix(
                Words(
                    "or use a checkpoint with calibrated scaling factors (k_scale, v_scale) for the KV cache, made with llm-compressor on a few hundred samples",
                    "或使用带校准 scaling factor（k_scale、v_scale）的检查点，例如用 llm-compressor 以几百条样本生成",
                )
            ),
        ],
        verify=Words(
            "the same evaluation at temperature 0 with and without the 8-bit KV cache: equal within its noise",
            "在 temperature 0 下用和不用 8 位 KV 缓存做同一评测：在误差内相等",
        ),
        confidence=0.9 if drop else 0.75 if complained else 0.4,
        weight="degraded" if drop or complained else "remark",
        explains=("Q13",) if drop or complained else (),
    )


def quality_dropped(case: Case) -> Found | None:
    method = case.launch.value("quantization").replace("None", "") or case.model.claimed or case.model.named
    if not method:
        return None
    drop = drop_of(case)
    bits = case.model.claim.get("bits") or case.model.claim.get("w_bit") or case.model.named_bits
    few = isinstance(bits, int) and bits <= 4
    if drop is None and not (complains_of(case.context, "answer quality") and few):
        return None
    how = f"{method}{f', {bits} bits' if bits else ''}"
    group = case.model.claim.get("group_size")
    shown = (
        f": {drop.now:g} against {drop.before:g} of the reference, {100 * abs(drop.now - drop.before) / max(abs(drop.before), 1e-9):.0f} % worse"
        if drop
        else ""
    )
    shown_zh = f"：{drop.now:g}，参考为 {drop.before:g}，差 {100 * abs(drop.now - drop.before) / max(abs(drop.before), 1e-9):.0f}%" if drop else ""
    fixes = [Fix(Words("take more bits (an 8-bit checkpoint: FP8 or int8 W8A8)", "用更多位数（8 位检查点：FP8 或 int8 W8A8）"))]
    if isinstance(group, int) and (group < 0 or group > 32):
        fixes.append(
            Fix(
                Words(
                    f"or smaller groups ({'one scale per column' if group < 0 else group} -> {64 if group > 64 or group < 0 else 32})",
                    f"或更小的组（{'每列一个 scale' if group < 0 else group} -> {64 if group > 64 or group < 0 else 32}）",
                )
            )
        )
    fixes.append(
        Fix(
            Words(
                "or a better method or calibration: AWQ, or GPTQ with 128 to 512 samples of the own domain",
                "或更好的方法、校准：AWQ，或用 128 到 512 条本领域样本做 GPTQ",
            )
        )
    )
    fixes.append(Fix(Words("or the unquantized model", "或使用未量化的模型")))
    return Found(
        cause=Words(
            f"Quality fell with the quantised weights ({how}){shown}. It comes from format and calibration; no sampling setting gives it back.",
            f"量化权重（{how}）后质量下降{shown_zh}。原因在格式与校准，采样参数找不回来。",
        ),
        evidence=[
            *([drop.hit.quote()] if drop else []),
            *([case.launch.config["quantization"].quote] if "quantization" in case.launch.config else []),
            *([case.context.quote("model.config.quantization_config")] if case.model.claim else []),
        ],
        fixes=fixes,
        verify=Words("the same evaluation at temperature 0, quantised against unquantised", "temperature 0 下同一评测，量化与未量化对比"),
        confidence=0.8 if drop else 0.4,
        weight="degraded" if drop else "remark",
    )


RULES: Final = (
    Rule(
        id="Q11",
        title=Words("8-bit KV cache without scales", "8 位 KV 缓存缺少 scale"),
        symptoms=Words("`Using KV cache scaling factor 1.0`", "`Using KV cache scaling factor 1.0`"),
        why=Words("keys and values are stored in 8 bits with a scale of 1", "K、V 以 8 位、比例 1 存储"),
        needs=Words("an evaluation with and without", "开与不开的评测"),
        remedy=Words("calibrated scales or a 16-bit cache", "校准的 scale，或 16 位缓存"),
        check=Words("the same evaluation with and without", "同一评测对比"),
        judge=eight_bit_cache_without_scales,
        sees=(NO_SCALES, EVALUATION),
    ),
    Rule(
        id="Q13",
        title=Words("Quality dropped with quantisation", "量化后质量下降"),
        symptoms=Words("an evaluation falls against the unquantised model", "评测低于未量化模型"),
        why=Words("too few bits, poor calibration or method", "位数太少、校准或方法不佳"),
        needs=Words("an evaluation at temperature 0 of both", "两者在 temperature 0 下的评测"),
        remedy=Words("a better method or calibration, more bits; not temperature", "更好的方法或校准、更多位数；不是 temperature"),
        check=Words("evaluation at temperature 0", "temperature 0 下的评测"),
        judge=quality_dropped,
    ),
)
