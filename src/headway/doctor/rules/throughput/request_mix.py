"""What the requests ask for: long prompts in small steps (T10, T11), answers to the limit (T17), several answers each (T18)."""

from __future__ import annotations

from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.load import LoadShape, shape_of
from headway.doctor.facts.metrics import Span, span_of
from headway.doctor.facts.requests import GAP_SERVER, OUTPUT_TOKENS, PREFILL, PROMPT_TOKENS
from headway.doctor.facts.step_budget import chosen_small, step_budget_of
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SAMPLED: Final = sight("SamplingParams(n=", pattern=r"SamplingParams\(n=(?P<n>\d+)(?:, best_of=(?P<best>\d+))?(?:.*?max_tokens=(?P<limit>\d+))?", series=True)
BEAMS: Final = sight("use_beam_search=True", "BeamSearchParams(beam_width=", pattern=r"use_beam_search=True|BeamSearchParams\(beam_width=(?P<width>\d+)")

_SMALL_BUDGET: Final = 2048
_GOOD_BUDGET: Final = 8192
_MANY_STEPS: Final = 6
_LONG_SHARE: Final = 0.5
_TOTAL_RISES: Final = Words("the same benchmark before and after: total tokens/s rises", "同一基准测试前后对比：总 tokens/s 上升")


def small_budget(case: Case) -> Found | None:
    budget, prompt, shape = step_budget_of(case.log, case.launch), _prompt_tokens(case), shape_of(case.load)
    if budget is None or budget.value > _SMALL_BUDGET or shape is None:
        return None
    chosen = case.launch.flags.get("max_num_batched_tokens") is not None
    if prompt is None:
        return _budget_holds_back(case, budget, shape) if chosen else None
    steps = prompt[0] / budget.value
    if steps < 2:
        return None
    pressed = shape.waiting_share >= 0.5 or shape.running >= 16
    crowded = bool(shape.running * 2 >= budget.value)
    many = chosen_small(case.launch) and steps >= _MANY_STEPS
    confidence = 0.75 if chosen and (pressed or many) else 0.65 if crowded or (chosen and steps >= 4) else 0.45
    return Found(
        cause=Words(
            f"A step computes at most {budget.value} tokens, so a prompt of {prompt[0]:,.0f} tokens takes {steps:.1f} steps that it shares with"
            f" {shape.running:g} running sequences{_waiting(shape)[0]}. Small steps leave the device's arithmetic unused.",
            f"每一步最多计算 {budget.value} 个 token，{prompt[0]:,.0f} token 的提示词要分 {steps:.1f} 步，并与 {shape.running:g} 个运行中的序列共享{_waiting(shape)[1]}。步子太小，设备算力没有用满。",
        ),
        evidence=[budget.quote, prompt[1], shape.middle.quote],
        fixes=[_larger_budget(budget.value)],
        verify=_TOTAL_RISES,
        confidence=confidence,
        weight="degraded",
        explains=("F3", "T11") if many and not complains_of(case.context, "first token") else (),
    )


def _budget_holds_back(case: Case, budget: Fact[int], shape: LoadShape) -> Found | None:
    """Requests wait although neither the cap on sequences nor the cache is used up: the tokens of a step are."""
    cap = case.launch.number("max_num_seqs") or 128.0
    if shape.waiting_share < 0.5 or shape.usage is None or shape.usage >= 0.7 or shape.running >= 0.9 * cap or not shape.prompt_rate:
        return None
    return Found(
        cause=Words(
            f"Requests wait ({shape.waiting:g}) although only {shape.running:g} of {cap:g} sequences run and the KV cache is {shape.usage:.0%} full: a step computes at most {budget.value} tokens,"
            f" and prompts arrive at {shape.prompt_rate:,.0f} tokens/s, so they queue for their share of steps.",
            f"有 {shape.waiting:g} 个请求在等待，但 {cap:g} 个序列的上限只用了 {shape.running:g}，KV 缓存只用了 {shape.usage:.0%}：每一步最多计算 {budget.value} 个 token，而提示词以每秒 {shape.prompt_rate:,.0f} token 到达，只能排队等步内份额。",
        ),
        evidence=[budget.quote, shape.middle.quote],
        fixes=[_larger_budget(budget.value)],
        verify=_TOTAL_RISES,
        confidence=0.7,
        weight="degraded",
    )


def _larger_budget(now: int) -> Fix:
    return Fix(
        Words(
            f"let a step compute more tokens: {now} -> {_GOOD_BUDGET} (for throughput; inter-token time grows a little)",
            f"让每一步计算更多 token：{now} -> {_GOOD_BUDGET}（提高吞吐；token 间隔会略增）",
        ),
        f"--max-num-batched-tokens {_GOOD_BUDGET}",
    )


def long_prompts(case: Case) -> Found | None:
    shape, span = shape_of(case.load), span_of(case.context)
    mix = _mix(case, shape, span)
    if mix is None:
        return None
    prompt, output, quote = mix
    ratio = prompt / output if output else float("inf")
    share = _prefill_share(case, span)
    if ratio < 8 or (share is not None and share < _LONG_SHARE):
        return None
    pressed = shape is not None and (shape.waiting_share >= 0.5 or shape.running >= 16)
    bothers = pressed or complains_of(case.context, "throughput")
    confidence = 0.75 if share is not None and pressed else 0.65 if share is not None and share >= 0.7 else 0.6 if bothers and ratio >= 15 else 0.4
    text = f", and {share:.0%} of the time of a request is prefill" if share is not None else ""
    text_zh = f"，请求 {share:.0%} 的时间花在预填充上" if share is not None else ""
    hits = f" The prefix cache saves {shape.hit_rate:.0%} of it." if shape and shape.hit_rate is not None else ""
    hits_zh = f"前缀缓存省下了其中的 {shape.hit_rate:.0%}。" if shape and shape.hit_rate is not None else ""
    return Found(
        cause=Words(
            f"Prompts dominate: {prompt:,.0f} prompt tokens for {output:,.0f} output tokens ({ratio:.0f} : 1){text}. The device spends its time on prefill, not on decoding.{hits}",
            f"提示词占了主要工作量：{prompt:,.0f} 个提示 token 对 {output:,.0f} 个输出 token（{ratio:.0f} : 1）{text_zh}。设备的时间主要花在预填充（prefill）而不是解码上。{hits_zh}",
        ),
        evidence=[quote, *([shape.middle.quote] if shape else [])],
        fixes=[
            Fix(Words("put what all prompts share first, so that the prefix cache keeps it; send less context per request", "把各提示词的公共部分放在最前面，让前缀缓存保留它；减少每个请求的上下文")),
            Fix(Words("serve long prompts from a pool of their own, so that they do not slow the others", "把长提示词放到单独的服务池，避免拖慢其他请求")),
        ],
        verify=Words("the same benchmark before and after: prefix cache hit rate and output tokens/s rise", "同一基准测试前后对比：前缀缓存命中率和输出 tokens/s 上升"),
        confidence=confidence,
        weight="degraded",
    )


def answers_to_the_limit(case: Case) -> Found | None:
    span = span_of(case.context)
    counted = _finished_in_span(case, span) or _finished_in_rows(case)
    if counted is None:
        return None
    cut, all_, tokens, quote = counted
    long = tokens is not None and tokens >= 512
    if all_ < (5 if long else 10) or cut / all_ < 0.6:
        return None
    most = cut / all_ >= 0.8
    unknown = tokens is None and all_ >= 20
    confidence = 0.75 if long and most else 0.6 if (unknown and most) or (complains_of(case.context, "throughput") and (unknown or (tokens or 0) >= 256)) else 0.4
    mean = f", {tokens:,.0f} tokens on average" if tokens else ""
    mean_zh = f"，平均 {tokens:,.0f} 个 token" if tokens else ""
    bound = max(64, int(tokens // 2 // 64 * 64)) if tokens else None
    shown, shown_zh = (" (shown: half of the present mean)", "（此处为目前平均值的一半）") if bound else ("", "")
    return Found(
        cause=Words(
            f"{cut:,.0f} of {all_:,.0f} answers ({cut / all_:.0%}) end by finish reason `length`{mean}: they run to max_tokens instead of stopping, and occupy the batch and the cache for it.",
            f"{all_:,.0f} 个回答中有 {cut:,.0f} 个（{cut / all_:.0%}）以 `length` 结束{mean_zh}：它们一直写到 max_tokens 才停，期间占着批次和缓存。",
        ),
        evidence=[quote],
        fixes=[
            Fix(Words(f"set max_tokens in the requests to what is needed{shown}", f"在请求中把 max_tokens 设为实际所需{shown_zh}"), f'"max_tokens": {bound}' if bound else None),
            Fix(
                Words(
                    "use the chat endpoint with the model's own chat template (a base model or a wrong template never writes its end token), or add stop strings",
                    "使用聊天接口和模型自带的对话模板（基座模型或错误模板不会输出结束符），或添加 stop 字符串",
                )
            ),
        ],
        verify=Words(
            'vllm:request_success_total{finished_reason="stop"} grows faster than {finished_reason="length"}', 'vllm:request_success_total{finished_reason="stop"} 的增长快于 {finished_reason="length"}'
        ),
        confidence=confidence,
        weight="degraded",
    )


def several_answers_each(case: Case) -> Found | None:
    seen = _answers_per_request(case)
    if seen is None or seen[0] < 1.5:
        return None
    times, what, quote = seen
    shape = shape_of(case.load)
    load = f" {shape.running:g} sequences run for about {shape.running / times:.0f} requests." if shape else ""
    load_zh = f"正在运行的 {shape.running:g} 个序列约只对应 {shape.running / times:.0f} 个请求。" if shape else ""
    return Found(
        cause=Words(
            f"Each request asks for {times:g} answers ({what}), so the server generates {times:g} times what the client counts.{load}",
            f"每个请求要 {times:g} 个答案（{what}），服务器实际生成的是客户端所计的 {times:g} 倍。{load_zh}",
        ),
        evidence=[quote, *([shape.middle.quote] if shape else [])],
        fixes=[
            Fix(Words("ask for one answer without beam search", "只要一个答案，不用束搜索（beam search）"), '"use_beam_search": false, "n": 1')
            if "beam" in what
            else Fix(Words("ask for one answer (n = 1, no best_of)", "只要一个答案（n = 1，不用 best_of）"), '"n": 1, "best_of": 1' if "best_of" in what else '"n": 1')
        ],
        verify=Words(f"the same requests with one answer each: requests per second rise by up to {times:g} x", f"同样的请求每个只要一个答案：每秒请求数最多提高 {times:g} 倍"),
        confidence=0.75,
        weight="degraded",
    )


def _prompt_tokens(case: Case) -> tuple[float, Quote] | None:
    """Median prompt of the rows, else the mean of the histogram."""
    rows = [row for row in case.requests if row.number(*PROMPT_TOKENS)]
    if rows:
        value = median(row.number(*PROMPT_TOKENS) or 0.0 for row in rows)
        return value, rows[len(rows) // 2].quote
    span = span_of(case.context)
    mean = span.mean("request_prompt_tokens") if span else None
    if span and not mean and (done := span.grown("request_success")) and (prompted := span.grown("prompt_tokens")):
        return prompted / done, case.context.quote(f"metrics.{span.last.index}", f"prompt_tokens grew by {prompted:g} for {done:g} requests")
    return (mean, case.context.quote(f"metrics.{span.last.index}", f"mean of request_prompt_tokens {mean:.0f}")) if span and mean else None


def _mix(case: Case, shape: LoadShape | None, span: Span | None) -> tuple[float, float, Quote] | None:
    """Prompt and output tokens of the same time: of rows, of the counters, or as rates."""
    rows = [row for row in case.requests if row.number(*PROMPT_TOKENS) and row.number(*OUTPUT_TOKENS)]
    if len(rows) >= 3:
        prompt, output = (sum(row.number(*names) or 0.0 for row in rows) for names in (PROMPT_TOKENS, OUTPUT_TOKENS))
        return prompt, output, rows[0].quote
    if span is not None:
        prompted, generated = span.grown("prompt_tokens"), span.grown("generation_tokens")
        if prompted and generated:
            return prompted, generated, case.context.quote(f"metrics.{span.last.index}", f"prompt_tokens {prompted:g}, generation_tokens {generated:g}")
    if shape is not None and shape.prompt_rate and shape.generation_rate:
        return shape.prompt_rate, shape.generation_rate, shape.last.quote
    return None


def _prefill_share(case: Case, span: Span | None) -> float | None:
    shares = [
        prefill / (prefill + gap * tokens)
        for row in case.requests
        if (prefill := row.seconds(*PREFILL)) and (gap := row.seconds(*GAP_SERVER)) is not None and (tokens := row.number(*OUTPUT_TOKENS))
    ]
    if len(shares) >= 3:
        return median(shares)
    if span is None:
        return None
    prefill, inference = span.mean("request_prefill_time_seconds"), span.mean("request_inference_time_seconds")
    if prefill is None or inference is not None:
        return prefill / inference if prefill is not None and inference else None
    prefill, decode = span.grown("request_prefill_time_seconds_sum"), span.grown("request_decode_time_seconds_sum")
    return prefill / (prefill + decode) if prefill and decode is not None else None


def _finished_in_span(case: Case, span: Span | None) -> tuple[float, float, float | None, Quote] | None:
    reasons = span.grown_by("finished_reason", "request_success") if span else {}
    if span is None or not sum(reasons.values()):
        return None
    quote = case.context.quote(f"metrics.{span.last.index}", "request_success: " + ", ".join(f"{name} {count:g}" for name, count in sorted(reasons.items())))
    return reasons.get("length", 0.0), sum(reasons.values()), span.mean("request_generation_tokens"), quote


def _finished_in_rows(case: Case) -> tuple[float, float, float | None, Quote] | None:
    rows = [row for row in case.requests if any(name in row.cells for name in ("finish", "finish_reason", "finished_reason"))]
    if not rows:
        return None
    cut = [row for row in rows if "length" in (row.cells.get("finish"), row.cells.get("finish_reason"), row.cells.get("finished_reason"))]
    tokens = [value for row in cut if (value := row.number(*OUTPUT_TOKENS)) is not None]
    return float(len(cut)), float(len(rows)), median(tokens) if tokens else None, (cut or rows)[0].quote


def _answers_per_request(case: Case) -> tuple[float, str, Quote] | None:
    lines = [(max(hit.number("n"), hit.number("best") if hit["best"] else 1.0), hit) for hit in case.log.hits(SAMPLED)]
    if lines:
        times = median(value for value, _ in lines)
        hit = next((hit for value, hit in lines if value >= 2), lines[0][1])
        return times, f"n={hit['n']}" + (f", best_of={hit['best']}" if hit["best"] else ""), hit.line.quote(hit.match.start())
    if beam := case.log.first(BEAMS):
        width = beam.number("width") if beam["width"] else 2.0
        return width, "beam search", beam.line.quote(beam.match.start())
    rows = [(row, value) for row in case.requests if (value := max(row.number("n") or 0, row.number("best_of") or 0, row.number("beam_width") or 0))]
    if rows and len(rows) * 2 >= len(case.requests):
        asked = next(name for name in ("beam_width", "best_of", "n") if rows[0][0].number(name) == rows[0][1])
        return median(value for _, value in rows), "beam search" if asked == "beam_width" else f"{asked}={rows[0][1]:g}", rows[0][0].quote
    span = span_of(case.context)
    mean = span.mean("request_params_n") if span else None
    return (round(mean, 2), "mean of request_params_n", case.context.quote(f"metrics.{span.last.index}", f"request_params_n mean {mean:.2f}")) if span and mean else None


def _waiting(shape: LoadShape) -> tuple[str, str]:
    return (f" while {shape.waiting:g} requests wait", f"，另有 {shape.waiting:g} 个请求在等待") if shape.waiting else ("", "")


_SAME_BENCHMARK: Final = Words("the same benchmark before and after", "同一基准测试前后对比")

RULES: Final = (
    Rule(
        id="T10",
        title=Words("The token budget of a step is too small for these prompts", "每步 token 预算对这些提示词太小"),
        symptoms=Words("many steps per prompt, `--max-num-batched-tokens` 2048 or less", "每个提示词要很多步，`--max-num-batched-tokens` 不超过 2048"),
        why=Words("a small step does not fill the arithmetic units", "步子小，算力填不满"),
        needs=Words("the budget, prompt lengths, running sequences", "预算、提示词长度、运行中的序列数"),
        remedy=Words("`--max-num-batched-tokens 8192` for throughput", "为吞吐设 `--max-num-batched-tokens 8192`"),
        check=_SAME_BENCHMARK,
        judge=small_budget,
    ),
    Rule(
        id="T11",
        title=Words("Long prompts dominate the work", "长提示词占了主要工作量"),
        symptoms=Words("many prompt tokens for few output tokens", "提示 token 多，输出 token 少"),
        why=Words("prefill takes the time that decoding would use", "预填充占去了解码的时间"),
        needs=Words("prompt and output tokens, prefill share of the time", "提示与输出 token 数、预填充时间占比"),
        remedy=Words("prefix reuse, shorter prompts, a separate pool", "复用前缀、缩短提示词、单独的服务池"),
        check=_SAME_BENCHMARK,
        judge=long_prompts,
    ),
    Rule(
        id="T17",
        title=Words("Answers run to their limit", "回答总是写到上限"),
        symptoms=Words("finish reason `length` for most answers", "大多数回答的结束原因是 `length`"),
        why=Words("no end token is written, or max_tokens is far above need", "没有写出结束符，或 max_tokens 远大于所需"),
        needs=Words("finish reasons and answer lengths", "结束原因与回答长度"),
        remedy=Words("`max_tokens`, stop strings, the right chat template", "`max_tokens`、stop 字符串、正确的对话模板"),
        check=_SAME_BENCHMARK,
        judge=answers_to_the_limit,
    ),
    Rule(
        id="T18",
        title=Words("Each request asks for several answers", "每个请求要多个答案"),
        symptoms=Words("`n` above 1, `best_of`, beam search", "`n` 大于 1、`best_of`、束搜索"),
        why=Words("the server generates every candidate", "服务器要生成每个候选"),
        needs=Words("request parameters", "请求参数"),
        remedy=Words("`n` 1, no best_of, no beams", "`n` 设 1，不用 best_of 和束搜索"),
        check=_SAME_BENCHMARK,
        judge=several_answers_each,
        sees=(SAMPLED, BEAMS),
    ),
)
