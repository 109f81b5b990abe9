"""Out of memory while requests are served: prompt log-probabilities (O8), fragmentation or a spike (O9)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.memory.blame import blame
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.moment import PROMPT_LENGTH, PROMPT_SCORED
from headway.doctor.rules.memory.sizes import asked_text, round_down, utilization
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

IMAGES: Final = sight(
    "mm_processor_kwargs", "limit_mm_per_prompt", "image_url", "pixel_values", "encoder cache", "in embed_multimodal", "visual.blocks"
)


def prompt_log_probabilities(case: Case) -> Found | None:
    """Prompt tokens x vocabulary x 4 bytes, in one tensor."""
    failure = blame(case)
    if failure is None or failure.rule != "O8":
        return None
    oom = failure.oom
    vocabulary = case.model.config.get("vocab_size")
    request = next((hit for hit in reversed(case.log.hits(PROMPT_SCORED)) if hit.line.number < oom.hit.line.number), None)
    prompt = next((hit for hit in reversed(case.log.hits(PROMPT_LENGTH)) if hit.line.number < oom.hit.line.number), None)
    tokens = int(prompt.number("tokens")) if prompt else None
    if tokens is None and oom.asked and isinstance(vocabulary, int):
        tokens = int(oom.asked * 2**30 / 4 / vocabulary)
    if not isinstance(vocabulary, int) and tokens and oom.asked:
        vocabulary = round(oom.asked * 2**30 / 4 / tokens)
    sum_ = (
        f"{tokens} prompt tokens x a vocabulary of {vocabulary} x 4 B = {tokens * vocabulary * 4 / 2**30:.2f} GiB"
        if tokens and vocabulary
        else "prompt tokens x vocabulary x 4 B"
    )
    sum_zh = (
        f"{tokens} 个提示 token x 词表 {vocabulary} x 4 B = {tokens * vocabulary * 4 / 2**30:.2f} GiB"
        if tokens and vocabulary
        else "提示 token 数 x 词表 x 4 B"
    )
    asked = f"; {oom.asked:.2f} GiB were asked for" if oom.asked else ""
    free = f" and {oom.free:.2f} are free" if oom.free is not None else ""
    step = _step_that_fits(case, oom.free, vocabulary if isinstance(vocabulary, int) else None)
    return Found(
        cause=Words(
            f"A request wants log-probabilities of its prompt (prompt_logprobs, or echo with logprobs): {sum_} in one tensor{asked}{free}. One such request ends the engine; the model and the card are"
            " not too large for normal ones.",
            f"有请求要求返回提示的对数概率（prompt_logprobs，或 echo 加 logprobs）：一个张量就要 {sum_zh}{f'；申请了 {oom.asked:.2f} GiB' if oom.asked else ''}"
            f"{f'，空闲 {oom.free:.2f} GiB' if oom.free is not None else ''}。一个这样的请求就会让引擎退出；对普通请求而言模型和显卡都不算大。",
        ),
        evidence=[oom.hit.quote(), *(hit.quote() for hit in (request, prompt) if hit is not None)],
        fixes=[
            Fix(
                Words(
                    "refuse requests with prompt_logprobs (this refuses log-probabilities of answers too), or send such jobs with shorter prompts to an engine of their own",
                    "拒绝带 prompt_logprobs 的请求（回答的 logprobs 也会被拒绝），或用较短提示把这类打分任务发到单独的引擎",
                ),
                "--max-logprobs 0",
            ),
            Fix(
                Words(
                    f"smaller steps: {step} tokens at a time take {step * (vocabulary or 152064) * 4 / 2**30:.2f} GiB",
                    f"减小单步：每步 {step} 个 token 只需 {step * (vocabulary or 152064) * 4 / 2**30:.2f} GiB",
                ),
                flag(case, "step", step),
            ),
            Fix(Words("leave more headroom beside the cache", "在缓存之外多留余量"), flag(case, "share", f"{utilization(case) - 0.05:.2f}")),
        ],
        verify=Words("replay that request alone: the engine answers it (or refuses it) and lives on", "单独重放该请求：引擎作答（或拒绝）且不退出"),
        confidence=STATED,
    )


def _step_that_fits(case: Case, free: float | None, vocabulary: int | None) -> int:
    """A power of two whose logits take at most half of what is free; below what is set now."""
    now = int(case.launch.number("max_num_batched_tokens") or 8192)
    step = 256
    while step * 2 < now and step * 2 <= 8192 and step * 2 * (vocabulary or 152064) * 4 * 2 <= (free or 2.0) * 2**30:
        step *= 2
    return step


def fragmentation_or_spike(case: Case) -> Found | None:
    """Fragmentation: what is reserved and unused is at least what was asked for. Else a spike that profiling did not see."""
    failure = blame(case)
    if failure is None or failure.rule != "O9":
        return None
    oom = failure.oom
    asked = oom.asked or 0.0
    share = f"{round_down(min(utilization(case), 0.95) - 0.03):g}"
    lower = Fix(Words("leave a little more beside the cap", "在上限之外多留一点"), flag(case, "share", share))
    images = case.log.first(IMAGES)
    limit = Fix(
        Words("limit the images per prompt, so that profiling sees the peak", "限制每个提示的图片数，让性能分析看到峰值"),
        "--limit-mm-per-prompt '{\"image\": 2}'",
    )
    if (oom.unallocated or 0) >= max(asked, 1.0):
        cause = Words(
            f"{asked_text(asked)} were refused although {oom.unallocated:.2f} GiB are reserved by PyTorch and in no tensor: the memory is fragmented after a while of service"
            f"{f' ({oom.allocated:.2f} GiB are really in use)' if oom.allocated else ''}. The model fits; more hardware is not the point.",
            f"申请 {asked_text(asked)} 被拒，而 PyTorch 保留着 {oom.unallocated:.2f} GiB 未使用的显存：运行一段时间后出现碎片{f'（实际在用 {oom.allocated:.2f} GiB）' if oom.allocated else ''}。模型放得下，不必加硬件。",
        )
        fixes = [
            Fix(
                Words("let the allocator grow its segments instead of splitting them", "让分配器扩展段而不是切碎"),
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            ),
            lower,
        ]
        confidence = STATED
    else:
        cause = Words(
            f"Under load a step asked for {asked:.2f} GiB{f' with {oom.free:.2f} free' if oom.free is not None else ''}: a spike that profiling at start did not see"
            f"{' (image inputs)' if images else ''}. Start, weights and cache had found room.",
            f"负载中某一步申请 {asked:.2f} GiB{f'，而空闲 {oom.free:.2f} GiB' if oom.free is not None else ''}：启动时的性能分析没有覆盖这个峰值{'（图像输入）' if images else ''}。启动、权重和缓存都放得下。",
        )
        fixes = [
            lower,
            Fix(Words("smaller steps", "减小单步"), flag(case, "step", max(1024, int(case.launch.number("max_num_batched_tokens") or 8192) // 2))),
        ]
        fixes.append(Fix(Words("and guard against fragmentation", "并防止碎片"), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"))
        confidence = 0.75
    if images:
        fixes.insert(1, limit)
    return Found(
        cause=cause,
        evidence=[oom.hit.quote(), *_tail(case), *([images.quote()] if images else [])],
        fixes=fixes,
        verify=Words(
            "watch reserved minus allocated memory over an hour of the same load: it stays flat", "同样负载下观察一小时保留减已分配的显存：保持平稳"
        ),
        confidence=confidence,
    )


def _tail(case: Case) -> list[Quote]:
    """The end of the long message, where the unallocated part stands."""
    failure = blame(case)
    line = failure.oom.hit.line if failure else None
    at = line.text.find("Of the allocated memory") if line else -1
    return [line.quote(at)] if line and at >= 0 else []


RULES: Final = (
    Rule(
        id="O8",
        title=Words("Prompt log-probabilities fill the device", "提示对数概率占满显存"),
        symptoms=Words(
            "out of memory in `compute_logprobs` or `log_softmax`; a request with prompt_logprobs, or echo and logprobs",
            "在 `compute_logprobs` 或 `log_softmax` 中显存不足；请求带 prompt_logprobs，或 echo 加 logprobs",
        ),
        why=Words("prompt tokens x vocabulary x 4 B in one tensor", "一个张量需要 提示 token x 词表 x 4 B"),
        needs=Words("prompt tokens, vocabulary", "提示 token 数、词表"),
        remedy=Words("refuse or limit such requests, smaller steps, headroom", "拒绝或限制这类请求、减小单步、留余量"),
        check=Words("replay that request alone", "单独重放该请求"),
        judge=prompt_log_probabilities,
        sees=(PROMPT_SCORED, PROMPT_LENGTH),
    ),
    Rule(
        id="O9",
        title=Words("Fragmentation or a spike under load", "负载下的碎片或峰值"),
        symptoms=Words(
            "out of memory after hours of service; gigabytes `reserved by PyTorch but unallocated`",
            "服务数小时后显存不足；`reserved by PyTorch but unallocated` 达数 GB",
        ),
        why=Words("unused reserved memory in pieces, or inputs larger than those profiled", "保留的空闲显存成碎片，或输入大于性能分析时的输入"),
        needs=Words("asked, reserved, allocated", "申请量、保留量、已分配量"),
        remedy=Words("expandable segments, a slightly lower share; limit inputs per prompt", "expandable_segments、略低的份额；限制每提示输入"),
        check=Words("reserved minus allocated stays flat", "保留减已分配保持平稳"),
        judge=fragmentation_or_spike,
        sees=(IMAGES,),
    ),
)
