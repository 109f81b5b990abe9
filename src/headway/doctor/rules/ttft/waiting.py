"""Requests wait before anything is computed: behind many others (F1), or behind one long prompt (F2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.first_token import FirstToken, first_token_of, total_of
from headway.doctor.facts.load import LoadShape, shape_of
from headway.doctor.facts.requests import GAP_SERVER, OUTPUT_TOKENS, PREFILL, PROMPT_TOKENS, QUEUE, RequestRow
from headway.doctor.facts.step_budget import step_budget_of
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.throughput.batch_limits import larger_cap, rows_of_users
from headway.doctor.rules.ttft.stalled_steps import stalled_steps
from headway.doctor.words import Words

_LONG: Final = 8  # times the short prompts: such a prompt takes many steps of the others
_LONG_TOKENS: Final = 1024  # a shorter one is computed within a step or two
_LATE: Final = 5.0
_QUEUE_SHARE: Final = 0.6


def queueing(case: Case) -> Found | None:
    seen = first_token_of(case.requests, case.context)
    if seen is None or seen.queue is None or seen.total is None or seen.queue < 0.5:
        return None
    share = seen.queue_share or 0.0
    if share < _QUEUE_SHARE or (seen.prefill is not None and seen.queue < 2 * seen.prefill) or _long_blocker(case.requests):
        return None
    shape = shape_of(case.load)
    cap = case.launch.number("max_num_seqs")
    full = shape is not None and cap is not None and shape.running >= cap
    growth, growth_zh = _growth(case.requests)
    prefill = f" and prefill {seen.prefill:.2f} s" if seen.prefill is not None else ""
    prefill_zh = f"，预填充 {seen.prefill:.2f} 秒" if seen.prefill is not None else ""
    load, load_zh = _load_words(shape, cap)
    what, what_zh = ("median", "中位数") if seen.rows else ("mean", "平均")
    room = shape is not None and shape.usage is not None and shape.usage < 0.7
    return Found(
        cause=Words(
            f"Requests wait in the queue: {what} queue time {seen.queue:.2f} s is {share:.0%} of the {seen.total:.2f} s to the first token{prefill}{growth}{load}."
            " More arrives than the server's capacity; options for prefill or prefix reuse do not shorten a queue.",
            f"请求在排队：排队时间{what_zh} {seen.queue:.2f} 秒，占首 token 时间 {seen.total:.2f} 秒的 {share:.0%}{prefill_zh}{growth_zh}{load_zh}。到达的请求超过服务器容量；预填充或前缀复用的选项无法缩短队列。",
        ),
        evidence=[*seen.quotes, *([shape.last.quote] if shape else [])],
        fixes=_capacity_fixes(case, seen, shape, cap if full and room else None),
        verify=Words(
            "at the planned request rate: vllm:request_queue_time_seconds stays below 0.1 s on average and `Waiting` near 0", "在计划的请求速率下：vllm:request_queue_time_seconds 平均低于 0.1 秒，`Waiting` 接近 0"
        ),
        confidence=_confidence(seen, share, shape),
        weight="degraded",
        explains=("T1", "T2", "T11") if rows_of_users(case) and (full or cap is None) else ("T11",),
    )


def _confidence(seen: FirstToken, share: float, shape: LoadShape | None) -> float:
    if seen.rows:
        return 0.92 if share >= 0.75 else 0.7
    if shape is None or not shape.waiting_share:  # an old queue in a counter that runs since the start
        return 0.45
    return 0.85 if share >= 0.75 and seen.count >= 10 else 0.7


def _capacity_fixes(case: Case, seen: FirstToken, shape: LoadShape | None, cap: float | None) -> list[Fix]:
    fixes: list[Fix] = []
    better = larger_cap(int(cap), shape.usage) if cap is not None and shape is not None else 0
    if cap is not None and shape is not None and better > cap:
        fixes.append(Fix(Words(f"let more sequences run, the KV cache is only {shape.usage or 0:.0%} full: {cap:g} -> {better}", f"允许更多序列运行，KV 缓存只用了 {shape.usage or 0:.0%}：{cap:g} -> {better}"), f"--max-num-seqs {better}"))
    replicas = _replicas(seen, shape)
    rate = _sustainable(case.requests, shape)
    at = f" (this server finishes about {rate:.2f} requests/s)" if rate else ""
    at_zh = f"（该服务器每秒约完成 {rate:.2f} 个请求）" if rate else ""
    fixes.append(Fix(Words(f"add capacity, so that the queue drains: {replicas} replicas behind a load balancer", f"增加容量以消除排队：在负载均衡后运行 {replicas} 个副本")))
    fixes.append(
        Fix(
            Words(
                f"or limit admission: a lower request rate{at}, and a bound on client concurrency at what runs at once{f' ({shape.running:g})' if shape else ''}",
                f"或限制接入：降低请求速率{at_zh}，并把客户端并发限制在同时运行的数量{f'（{shape.running:g}）' if shape else ''}",
            )
        )
    )
    return fixes


def _replicas(seen: FirstToken, shape: LoadShape | None) -> int:
    """Demand over capacity: running plus waiting over running, at least 2 and at most 16."""
    if shape is None or not shape.running:
        return 2
    return min(16, max(2, math.ceil((shape.running + shape.last.waiting) / shape.running) if shape.last.waiting else 2))


def _sustainable(rows: Sequence[RequestRow], shape: LoadShape | None) -> float | None:
    """Requests per second that the running slots finish: slots / time in the slot (Little's law)."""
    times = [
        prefill + gap * tokens
        for row in rows
        if (prefill := row.seconds(*PREFILL)) is not None and (gap := row.seconds(*GAP_SERVER)) is not None and (tokens := row.number(*OUTPUT_TOKENS))
    ]
    return shape.running / median(times) if times and shape is not None and median(times) > 0 else None


def _growth(rows: Sequence[RequestRow]) -> tuple[str, str]:
    queues = [value for row in rows if (value := row.seconds(*QUEUE)) is not None]
    third = len(queues) // 3
    if third < 2 or median(queues[-third:]) < 1.5 * median(queues[:third]):
        return "", ""
    return f"; it grows with the order of arrival from {queues[0]:.1f} to {queues[-1]:.1f} s", f"；并随到达顺序从 {queues[0]:.1f} 秒增长到 {queues[-1]:.1f} 秒"


def _load_words(shape: LoadShape | None, cap: float | None) -> tuple[str, str]:
    if shape is None or not shape.waiting:
        return "", ""
    of = f" of at most {cap:g}" if cap else ""
    of_zh = f"（上限 {cap:g}）" if cap else ""
    return f", with {shape.running:g}{of} running and {shape.last.waiting or 0:g} waiting", f"，{shape.running:g} 个在运行{of_zh}、{shape.last.waiting or 0:g} 个在等待"


def head_of_line(case: Case) -> Found | None:
    blocked = _long_blocker(case.requests)
    if blocked is None:
        return stalled_steps(case)
    long, late, fast = blocked
    tokens, prefill = long.number(*PROMPT_TOKENS) or 0.0, long.seconds(*PREFILL) or total_of(long) or 0.0
    short = median(row.number(*PROMPT_TOKENS) or 0.0 for row in late)
    slow = median(total_of(row) or 0.0 for row in late)
    usual = median(total_of(row) or 0.0 for row in fast) if fast else None
    against = f" against {usual:.2f} s for the others" if usual is not None else ""
    against_zh = f"，而其他短请求只要 {usual:.2f} 秒" if usual is not None else ""
    off = _chunked_off(case)
    given = step_budget_of(case.log, case.launch)
    budget = given.value if given else 2048
    threshold = max(64, min(budget // 4, 2048, int(2 ** math.floor(math.log2(max(tokens, 256) / 4)))))  # at least four steps for it
    fixes = []
    if off:
        fixes.append(Fix(Words("let a step mix pieces of the long prompt with the others", "让一步混合长提示词的片段和其他请求"), "--enable-chunked-prefill"))
    fixes.append(
        Fix(
            Words(
                f"bound the share of a long prompt in each step: at most {threshold} of its tokens of a budget of {budget}",
                f"限制长提示词在每一步中的份额：在 {budget} 的预算中每步最多计算它的 {threshold} 个 token",
            ),
            f"--long-prefill-token-threshold {threshold}",
        )
    )
    if budget > 2048:
        shorter = 8192 if budget > 8192 else 2048 if tokens > 4096 else 512
        fixes.append(Fix(Words(f"shorter steps: {budget} -> {shorter} tokens", f"缩短每一步：{budget} -> {shorter} token"), f"--max-num-batched-tokens {shorter}"))
    fixes.append(Fix(Words("send prompts of that length to a server of their own", "把这种长度的提示词发送到单独的服务器")))
    return Found(
        cause=Words(
            f"Short prompts wait behind a long one: while a prompt of {tokens:,.0f} tokens is in prefill for {prefill:.1f} s, {len(late)} {'request' if len(late) == 1 else 'requests'} of about {short:,.0f} tokens"
            f" took {slow:.1f} s to the first token{against}. The server is not out of capacity; the order within its steps is unfair.",
            f"短提示词排在长提示词后面：一个 {tokens:,.0f} token 的提示词预填充 {prefill:.1f} 秒期间，{len(late)} 个约 {short:,.0f} token 的请求要 {slow:.1f} 秒才出首 token{against_zh}。不是容量不足，而是每一步内的分配不公平。",
        ),
        evidence=[long.quote, late[0].quote, *([fast[0].quote] if fast else [])],
        fixes=fixes,
        verify=Words("p99 of the first token of short prompts while one long prompt runs: below 1 s", "有一个长提示词运行时，短提示词首 token 的 p99 低于 1 秒"),
        confidence=0.9 if fast and len(late) >= 2 else 0.75,
        weight="degraded",
        explains=("F1", "F3", "F6", "T11", "T10"),
    )


def _long_blocker(rows: Sequence[RequestRow]) -> tuple[RequestRow, list[RequestRow], list[RequestRow]] | None:
    """(the long row, short rows that are late although their own prefill is short, short rows in time), or None."""
    sized = [row for row in rows if row.number(*PROMPT_TOKENS) and total_of(row) is not None]
    if len(sized) < 3:
        return None
    long = max(sized, key=lambda row: row.number(*PROMPT_TOKENS) or 0.0)
    length = long.number(*PROMPT_TOKENS) or 0.0
    short = [row for row in sized if (row.number(*PROMPT_TOKENS) or 0.0) * _LONG <= length]
    takes = long.seconds(*PREFILL) or total_of(long) or 0.0
    if length < _LONG_TOKENS or len(short) < 2 or takes < 1.0 or len(short) * 2 < len(sized):
        return None
    late = [row for row in short if _waited(row, takes, length)]
    fast = [row for row in short if row not in late]
    if not fast:  # nobody in time to compare with: the wait has to be of the long prompt's size
        late = [row for row in late if (total_of(row) or 0.0) >= 0.1 * takes]
    usual = median(total_of(row) or 0.0 for row in fast) if fast else 0.0
    late = [row for row in late if (total_of(row) or 0.0) >= _LATE * max(usual, 0.02)]
    if not late or (not fast and len(late) * 4 > 3 * len(sized) and _rises_beyond(late, takes)):
        return None
    return long, late, fast


def _waited(row: RequestRow, takes: float, length: float) -> bool:
    """Late by about as long as the long prompt computes, and not because of its own prompt."""
    total, tokens = total_of(row) or 0.0, row.number(*PROMPT_TOKENS) or 0.0
    own = takes * tokens / length
    return 0.5 <= total - own <= 1.5 * takes + 1.0


def _rises_beyond(late: Sequence[RequestRow], takes: float) -> bool:
    """A queue that goes on growing is no blocker's work."""
    totals = [total_of(row) or 0.0 for row in late]
    return totals == sorted(totals) and totals[-1] > takes * 1.2


def _chunked_off(case: Case) -> bool:
    for name in ("enable_chunked_prefill", "chunked_prefill_enabled"):
        value = case.launch.value(name).lower()
        if value:
            return value == "false"
    return "--no-enable-chunked-prefill" in case.launch.command


RULES: Final = (
    Rule(
        id="F1",
        title=Words("Requests wait in the queue", "请求在排队"),
        symptoms=Words("queue time far above prefill time, growing with the order of arrival; benchmarks with `--request-rate inf`", "排队时间远大于预填充时间，并随到达顺序增长；`--request-rate inf` 的基准测试"),
        why=Words("arrival rate x service time / slots is above 1", "到达速率 x 服务时间 / 槽位数 大于 1"),
        needs=Words("queue and prefill time per request, or their histograms", "每个请求的排队和预填充时间，或其直方图"),
        remedy=Words("capacity, replicas, an admission limit, a lower rate", "容量、副本、接入限制、更低的速率"),
        check=Words("queue time at the planned rate", "计划速率下的排队时间"),
        judge=queueing,
    ),
    Rule(
        id="F2",
        proof="live",
        title=Words("Short prompts wait behind a long one", "短提示词排在长提示词后面"),
        symptoms=Words("short prompts are late only while a very long one is in prefill", "只有在极长提示词预填充期间，短提示词才慢"),
        why=Words("the long prompt fills the steps", "长提示词占满了每一步"),
        needs=Words("prompt length and times per request, or two scrapes some seconds apart", "每个请求的提示词长度和耗时，或相隔数秒的两次指标采样"),
        remedy=Words(
            "chunked prefill, `--long-prefill-token-threshold`, a smaller `--max-num-batched-tokens`, a separate pool", "分块预填充、`--long-prefill-token-threshold`、更小的 `--max-num-batched-tokens`、单独的服务池"
        ),
        check=Words("p99 of short prompts with one long prompt running", "有一个长提示词运行时短提示词的 p99"),
        judge=head_of_line,
    ),
)
