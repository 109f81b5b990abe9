"""N7 and N8: limits of time, of the caller and of a proxy."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.load import clock_seconds
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

CALLER: Final = sight(
    "APITimeoutError",
    "ReadTimeout",
    "Read timed out",
    "Request timed out",
    "Operation timed out after",
    "SocketTimeoutError",
    "ServerTimeoutError",
    "TimeoutError",
    "Client.Timeout exceeded",
    "context deadline exceeded",
    "UND_ERR_HEADERS_TIMEOUT",
    "UND_ERR_BODY_TIMEOUT",
    "ESOCKETTIMEDOUT",
    "ECONNABORTED",
    "timeout of ",
    "[request_timeout]",
    pattern=r"(?:APITimeoutError|ReadTimeout|Read timed out|Request timed out|Operation timed out after (?P<ms>\d+) ms|Operation timed out after (?P<milli>\d+) milliseconds|SocketTimeoutError|ServerTimeoutError|asyncio\.(?:exceptions\.)?TimeoutError"
    r"|Client\.Timeout exceeded|context deadline exceeded|UND_ERR_(?:HEADERS|BODY)_TIMEOUT|ESOCKETTIMEDOUT|ECONNABORTED|timeout of (?P<axios>\d+)ms exceeded|\[request_timeout\])",
)
_LIMIT: Final = re.compile(
    r"(?:read )?timeout[=: ]+(?P<s>\d+(?:\.\d+)?)(?! ?ms)\b|timed out after (?P<after>\d+(?:\.\d+)?) ?s(?:econds)?\b"
)
_RETRIES: Final = re.compile(
    r"max_retries[=: ]+(?P<max>\d+)|attempt (?P<n>\d+) of (?P<of>\d+)|Retry\(total=(?P<total>\d+)"
)
RETRY: Final = sight(
    "Retrying request to",
    "Retrying langchain",
    "retrying request",
    "Retrying (Retry(",
    "Will retry in",
    "attempt ",
    pattern=r"[Rr]etrying request|Retrying langchain|Retrying \(Retry|[Ww]ill retry in|attempt \d+ of \d+|attempt \d+/\d+",
)
ABORTED: Final = sight(
    "aborted",
    "Aborted request",
    "client disconnected",
    "Client disconnected",
    "Stop request",
    pattern=r"(?:Request (?P<id>[\w\-]+) aborted|Aborted request\(?s?\)? (?P<old>[\w\-,]+)|[Cc]lient disconnected|request (?P<other>[\w\-]+) (?:was )?aborted)",
)
_HTTP_PROXY: Final = re.compile(r"upstream|nginx|envoy|haproxy|ingress|traefik|Gateway|504|524")


def caller_gives_up(case: Case) -> Found | None:
    """The caller's limit against tokens by speed; the same request comes again when it retries."""
    hits = [
        hit
        for hit in case.log.hits(CALLER)
        if not _HTTP_PROXY.search(hit.line.text)
        and not re.search(
            r"resolve/|huggingface|hub|connect timeout|ConnectTimeout|connect\.|NCCL|store|Ray|probe failed",
            hit.line.text,
        )
    ]
    aborted = case.log.hits(ABORTED)
    rhythm = _rhythm(aborted)
    if not hits and not (rhythm and len(aborted) >= 3):
        return None
    text = "\n".join(hit.line.text for hit in hits)
    limit = _stated_limit(hits) or rhythm
    retries = _retries(text, case)
    speed = _speed(case)
    produced = f"{int(limit * speed):,}" if limit and speed else ""
    at = Words(f"{limit:g} s" if limit else "its time limit", f"{limit:g} s" if limit else "时限")
    rate = Words(
        f" One request gets about {speed:.1f} tokens/s now, that is {produced} tokens within the limit; longer answers never arrive."
        if produced and speed
        else "",
        f"目前每个请求约 {speed:.1f} tokens/s，时限内只能产生 {produced} 个 token；更长的回答永远到不了。"
        if produced and speed
        else "",
    )
    again = Words(
        f" Each is sent up to {retries + 1} times, which multiplies the load."
        if retries
        else " The same work is sent again, which adds load."
        if case.log.sees(RETRY)
        else "",
        f"每个请求最多发送 {retries + 1} 次，使负载成倍增加。"
        if retries
        else "同样的工作被再次发送，增加负载。"
        if case.log.sees(RETRY)
        else "",
    )
    gone = Words(
        f" The server saw {len(aborted)} aborted request{'s' if len(aborted) > 1 else ''}." if aborted else "",
        f"服务器记录了 {len(aborted)} 个被中止的请求。" if aborted else "",
    )
    wanted = _wanted_tokens(case)
    longer = math.ceil(1.5 * wanted / speed / 10) * 10 if wanted and speed else None
    patient = Words(
        f"or raise the caller's limit above tokens / speed ({wanted} tokens / {speed:.1f} per s = {wanted / speed:.0f} s)"
        if wanted and speed
        else "or raise the caller's limit above the longest answer (tokens / speed), or limit max_tokens to what fits into it",
        f"或把调用方时限提高到 token 数 / 速度 以上（{wanted} / {speed:.1f} = {wanted / speed:.0f} s）"
        if wanted and speed
        else "或把调用方时限提高到最长回答所需时间（token 数 / 速度）以上，或限制 max_tokens",
    )
    return Found(
        cause=Words(
            f"The caller gives up after {at.en}, before the answer is complete.{rate.en}{gone.en}{again.en}",
            f"调用方在 {at.zh} 后放弃，而回答尚未完成。{rate.zh}{gone.zh}{again.zh}",
        ),
        evidence=quoted(
            hits[0] if hits else None,
            hits[-1] if hits else None,
            aborted[0] if aborted else None,
            aborted[-1] if aborted else None,
        ),
        fixes=[
            Fix(
                Words(
                    "stream the answer: then the limit counts from token to token, not for the whole answer",
                    "使用流式输出：时限按 token 间隔计算，而不是整个回答",
                ),
                "stream=True",
            ),
            Fix(Words("switch blind retries off in the client", "关闭客户端的盲目重试"), "max_retries=0"),
            Fix(
                patient,
                f"timeout={longer}"
                if longer
                else f'"max_tokens": {int(limit * speed * 0.8)}'
                if limit and speed and limit * speed >= 20
                else None,
            ),
        ],
        verify=Words(
            "the log shows no further `aborted` lines and the same request comes only once",
            "日志不再出现 `aborted` 行，同一请求只出现一次",
        ),
        confidence=0.92 if hits and (aborted or limit) else 0.8,
    )


def _stated_limit(hits: Sequence[Hit]) -> float | None:
    for hit in hits:
        if thousandths := hit["ms"] or hit["milli"] or hit["axios"]:
            return round(float(thousandths) / 1000, 1)
        if found := _LIMIT.search(hit.line.text):
            return float(found["s"] or found["after"])
    return None


def _rhythm(aborted: Sequence[Hit]) -> float | None:
    """The spacing of aborts when it is a round number of seconds again and again."""
    times = [seconds for hit in aborted if (seconds := clock_seconds(hit.line.clock)) is not None]
    gaps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    if len(gaps) < 2:
        return None
    usual = median(gaps)
    for round_limit in (30, 60, 90, 100, 120, 180, 300, 600, 900, 1200, 1800, 3600):
        if abs(usual - round_limit) <= max(2.0, 0.02 * round_limit) and all(
            abs(gap - usual) <= max(3.0, 0.03 * usual) for gap in gaps
        ):
            return float(round_limit)
    return None


def _retries(text: str, case: Case) -> int:
    found = _RETRIES.search(text) or _RETRIES.search("\n".join(hit.line.text for hit in case.log.hits(RETRY)))
    if found is None:
        return 0
    return int(found["max"] or found["total"] or 0) or max(int(found["of"] or 1) - 1, 0)


def _speed(case: Case) -> float | None:
    """Tokens per second of one running request, from the busiest half of the samples."""
    rates = [
        sample.generation_rate / sample.running for sample in case.load if sample.generation_rate and sample.running
    ]
    return median(rates) if rates else None


def _wanted_tokens(case: Case) -> int | None:
    wanted = [
        int(value)
        for row in case.requests
        if (value := row.number("max_tokens", "out_tok", "output_tokens", "completion_tokens")) is not None
    ]
    return max(wanted, default=None)


PROXY: Final = sight(
    "upstream timed out",
    "504 Gateway",
    '" 504',
    "upstream request timeout",
    "error code 524",
    "Error code: 504",
    "Error code: 524",
    "Error 524",
    '" 524',
    "cloudflare",
    "upstream_response_timeout",
    "response_timeout",
    "Gateway Time-out",
    "Gateway Timeout",
    " 504 - ",
    "elb_status_code",
    " sH-- ",
    pattern=r"-1 504 - |elb_status_code[\"=: ]+504|\b504 .*\bsH--|upstream timed out.*while reading|504 Gateway|\"(?: HTTP/[\d.]+\")? 5[02]4\b|upstream request timeout|[Ee]rror (?:code:? )?524|Error code: 504|cloudflare.*\b524\b|(?:upstream_)?response_timeout|Gateway Time-?out",
)
# in this order: what a field says goes before a number that merely looks like seconds
_TIMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:request_time|upstream_response_time|rt|duration|urt|response_time)[=: \"]+(?P<s>\d+(?:\.\d+)?)(?P<unit>ms)?",
        r"timed out after (?P<s>\d+(?:\.\d+)?)|(?:idle|request|response) timeout (?:of )?(?P<idle>\d+) ?s\b",
        r"/(?P<thousandths>\d{4,7}) 504 | (?P<last>\d{4,7})ms$|\b504 [A-Z,]+ [^\"]*\"[^\"]*\" \d+ \d+ (?P<envoy>\d{4,7}) ",
        r"(?<![\d.:])(?P<s>\d{1,4}\.\d{3})(?![\d.])",
    )
)
SETTING: Final = sight(
    "proxy_read_timeout",
    "proxy-read-timeout",
    "timeout server",
    "idle_timeout",
    pattern=r"(?:proxy[_-]read[_-]timeout|timeout server|idle_timeout(?:\.timeout_seconds)?)[\"':= ]+(?P<s>\d+)(?P<unit>m?s)?",
)


def proxy_gives_up(case: Case) -> Found | None:
    """The time-out is the proxy's: it answers 504 at a round time while the engine works."""
    hits = case.log.hits(PROXY)
    if not hits or case.launch.program == "vllm-sr":
        return None
    times = [seconds for hit in hits if (seconds := _duration(hit.line.text)) is not None]
    setting = case.log.first(SETTING)
    stated = (float(setting["s"]) / (1000 if setting["unit"] == "ms" else 1)) if setting else _configured(case)
    limit = round(median(times)) if times else stated
    kind = _kind(f"{hits[0].line.process} {hits[0].line.text}")
    if limit is None and kind == "cloudflare":
        limit = 100  # its fixed limit, error 524
    speed = _speed(case)
    fits = Words(
        f" At {speed:.0f} tokens/s for each request only answers up to {int(limit * speed):,} tokens finish in that time."
        if limit and speed
        else "",
        f"每个请求约 {speed:.0f} tokens/s，该时间内只有不超过 {int(limit * speed):,} 个 token 的回答能完成。"
        if limit and speed
        else "",
    )
    after = Words(
        f" after {limit:g} s" if limit else " after a fixed time", f"在 {limit:g} s 后" if limit else "在固定时间后"
    )
    longest = math.ceil(4096 / speed / 60) * 60 if speed else None
    wanted = int(max(longest or 0, 2 * limit if limit else 600, 300))
    setting_of = {
        "nginx": f"proxy_read_timeout {wanted}s; proxy_send_timeout {wanted}s;",
        "ingress": f'nginx.ingress.kubernetes.io/proxy-read-timeout: "{wanted}"',
        "envoy": f"timeout: {wanted}s",
        "haproxy": f"timeout server {wanted}s",
        "balancer": f"idle_timeout.timeout_seconds={wanted}",
        "traefik": f"--serversTransport.forwardingTimeouts.responseHeaderTimeout={wanted}s",
        "cloudflare": None,
    }
    named, named_zh = ("", "") if kind == "proxy" else (f" ({kind})", f"（{kind}）")
    fixes = [
        Fix(
            Words(
                f"raise the read timeout of the proxy for this location to {wanted} s"
                + (" (enough for 4096 tokens)" if longest and longest >= wanted else ""),
                f"把代理在该 location 的读超时提高到 {wanted} s"
                + ("（足够 4096 个 token）" if longest and longest >= wanted else ""),
            ),
            setting_of.get(kind, setting_of["nginx"]),
        ),
        Fix(
            Words(
                "stream the answers through it without buffering, with keep-alive comments: then only the gap between two events counts",
                "以无缓冲的流式方式经过代理并发送 keep-alive 注释：此时只计算两个事件之间的间隔",
            ),
            "proxy_buffering off;" if kind in ("nginx", "ingress", "proxy") else "stream=True",
        ),
    ]
    if kind == "cloudflare":  # its limit can hardly be moved
        fixes = fixes[1:]
    return Found(
        cause=Words(
            f"The proxy{named} closes the request{after.en} and answers with a time-out ({len(hits)} such {'lines' if len(hits) > 1 else 'line'}), while the engine is healthy and still writes.{fits.en} A longer limit in the client changes nothing.",
            f"代理{named_zh}{after.zh}关闭请求并返回超时（{len(hits)} 行），而引擎正常、仍在生成。{fits.zh}延长客户端时限没有作用。",
        ),
        evidence=quoted(hits[0], hits[-1], setting, case.log.first(ABORTED)),
        fixes=fixes,
        verify=Words(
            f"one answer that takes longer than {limit or 60:g} s arrives through the proxy with 200, as it does directly at the server",
            f"一个耗时超过 {limit or 60:g} s 的回答能经过代理返回 200，与直连服务器时一致",
        ),
        confidence=0.93,
        explains=("N7", "N9", "F5"),
    )


def _duration(text: str) -> float | None:
    for pattern in _TIMES:
        if found := pattern.search(text):
            groups = found.groupdict()
            if thousandths := groups.get("thousandths") or groups.get("envoy") or groups.get("last"):
                return float(thousandths) / 1000
            value = float(groups.get("s") or groups.get("idle") or 0)
            return value / 1000 if groups.get("unit") else value
    return None


def _kind(text: str) -> str:
    small = text.lower()
    for kind, signs in (
        ("ingress", ("ingress",)),
        ("cloudflare", ("cloudflare", "524")),
        ("envoy", ("envoy", "istio", "upstream request timeout", "response_timeout")),
        ("haproxy", ("haproxy", " sh-- ")),
        ("traefik", ("traefik",)),
        ("balancer", ("elb", "alb", "awselb")),
    ):
        if any(sign in small for sign in signs):
            return kind
    return "nginx" if "nginx" in small or "upstream timed out" in small else "proxy"


def _configured(case: Case) -> float | None:
    """The read timeout in a configuration of the proxy that the context holds."""
    for text in case.context.members("files").values():
        if found := re.search(r"proxy[_-]read[_-]timeout[\"':= ]+(\d+)", str(text)):
            return float(found[1])
    return None


RULES: Final = (
    Rule(
        id="N7",
        title=Words("The caller's limit is shorter than the answer", "调用方时限短于回答所需时间"),
        symptoms=Words(
            "`timed out`, aborts at a round number of seconds, the same request added again",
            "`timed out`、按整数秒中止、同一请求再次加入",
        ),
        why=Words(
            "tokens / speed exceeds the limit; retries multiply the load", "token 数 / 速度超过时限；重试使负载成倍增加"
        ),
        needs=Words("the caller's limit and retries, tokens and speed", "调用方时限与重试次数、token 数与速度"),
        remedy=Words("stream, a longer limit, no blind retries", "流式输出、更长时限、不盲目重试"),
        check=Words("aborts stop", "不再有中止"),
        judge=caller_gives_up,
        sees=(CALLER, RETRY, ABORTED),
    ),
    Rule(
        id="N8",
        proof="live",
        title=Words("The proxy's time limit ends the request", "代理的时限终止了请求"),
        symptoms=Words("504 or `upstream timed out` at a round time", "在整数秒处出现 504 或 `upstream timed out`"),
        why=Words("the proxy's read timeout is shorter than the answer", "代理的读超时短于回答时间"),
        needs=Words("the time of the failed requests, the proxy's configuration", "失败请求的耗时、代理配置"),
        remedy=Words(
            "proxy_read_timeout, streaming with keep-alive comments", "proxy_read_timeout、带 keep-alive 注释的流式输出"
        ),
        check=Words("a long answer passes the proxy", "长回答能通过代理"),
        judge=proxy_gives_up,
        sees=(PROXY, SETTING, ABORTED),
    ),
)
