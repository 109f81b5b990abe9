"""Between server and client: a buffering proxy (F5), connecting counted in (F13), a benchmark's own queue (F15)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.bench_result import SIGHTS as BENCH_LINES
from headway.doctor.facts.bench_result import bench_results
from headway.doctor.facts.first_token import first_token_of
from headway.doctor.facts.requests import (
    AT_CLIENT,
    AT_SERVER,
    GAP_CLIENT,
    GAP_SERVER,
    OUTPUT_TOKENS,
    PREFILL,
    QUEUE,
    RequestRow,
    medians,
)
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_TOTAL: Final = ("total_cli_s", "total_s", "e2e_s", "latency_s")
_CONNECT: Final = ("connect_s", "conn_s", "tcp_s", "dns_s")
_TLS: Final = ("tls_s", "tls_handshake_s", "handshake_s")
_BURST: Final = 0.34  # client gap over server gap: tokens arrive in lumps
_PROXIES: Final[dict[str, tuple[str, str]]] = {
    "nginx": ("nginx", "proxy_buffering off; proxy_cache off; gzip off;"),
    "openresty": ("OpenResty", "proxy_buffering off; proxy_cache off; gzip off;"),
    "ingress": ("the ingress", "nginx.ingress.kubernetes.io/proxy-buffering: \"off\""),
    "traefik": ("Traefik", "traefik.http.services.llm.loadbalancer.responseForwarding.flushInterval=1ms"),
    "caddy": ("Caddy", "reverse_proxy 127.0.0.1:8000 { flush_interval -1 }"),
    "haproxy": ("HAProxy", "option http-no-delay"),
    "apache": ("Apache", "SetEnv proxy-sendchunked 1; ProxyPass / http://127.0.0.1:8000/ flushpackets=on"),
    "envoy": ("Envoy", ""),
    "cloudflare": ("Cloudflare", ""),
}
_UNNAMED: Final = Words("nginx, gateway or load balancer", "nginx、网关或负载均衡")


@dataclass(frozen=True, slots=True)
class Gap:
    """Seconds: first token at the server and the client, time between tokens at both, and the whole answer."""

    server: float | None
    client: float
    itl_server: float | None
    itl_client: float | None
    whole: float | None


def _gap(rows: list[RequestRow]) -> Gap | None:
    client = medians(rows, *AT_CLIENT)
    if client is None:
        return None
    server, itl_server, itl_client = medians(rows, *AT_SERVER), medians(rows, *GAP_SERVER), medians(rows, *GAP_CLIENT)
    tokens = [value for row in rows if (value := row.number(*OUTPUT_TOKENS)) is not None]
    whole = medians(rows, *_TOTAL)
    if whole is None and tokens and itl_server is not None and server is not None:
        whole = server + median(tokens) * itl_server
    return Gap(server, client, itl_server, itl_client, whole)


def buffering_proxy(case: Case) -> Found | None:
    rows = [row for row in case.requests if row.seconds(*AT_CLIENT) is not None]
    gap = _gap(rows) if rows else None
    if gap is None:
        return None
    lumps = _in_lumps(rows, gap)
    apart = 0.02 if _in_one_piece(rows) else 0.3  # seconds; a stream that came in one piece was held back, however short it was
    late_at_client = gap.server is None or (gap.client > 2 * gap.server and gap.client - gap.server > apart)
    near_the_end = gap.whole is not None and gap.client >= 0.7 * gap.whole
    if not late_at_client or lumps is None or not (lumps and (near_the_end or gap.server is not None)):
        return None
    if gap.server is None and not near_the_end:
        return None
    name, name_zh, setting = _proxy(case)
    server = f"the server sends it after {gap.server:.2f} s" if gap.server is not None else "the server streams"
    server_zh = f"服务器在 {gap.server:.2f} 秒时就已发出" if gap.server is not None else "服务器是流式发送的"
    itl, itl_zh = _gap_words(gap)
    whole = f", about the {gap.whole:.1f} s of the whole answer" if near_the_end and gap.whole is not None else ""
    whole_zh = f"，约等于整个回答的 {gap.whole:.1f} 秒" if near_the_end and gap.whole is not None else ""
    fixes = [
        Fix(Words(f"switch response buffering off in the proxy ({name})", f"在代理（{name_zh}）上关闭响应缓冲"), setting or None),
        Fix(Words("or let the response switch it off: a header that nginx and others honour", "或由响应关闭缓冲：nginx 等会遵守的响应头"), "X-Accel-Buffering: no"),
        Fix(Words("do not compress text/event-stream in any proxy or gateway", "任何代理或网关都不要压缩 text/event-stream")),
    ]
    return Found(
        cause=Words(
            f"A proxy buffers the stream: the first token reaches the client after {gap.client:.2f} s{whole}, while {server}{itl}. The engine is not slow; nothing in it needs to change.",
            f"代理在缓冲流式响应：客户端在 {gap.client:.2f} 秒后才收到首 token{whole_zh}，而{server_zh}{itl_zh}。引擎并不慢，无需改动。",
        ),
        evidence=[rows[0].quote, rows[-1].quote] if len(rows) > 1 else [rows[0].quote],
        fixes=fixes,
        verify=Words(
            "curl -N the same streamed request directly at the server and through the proxy: in both the first event comes at the same time, and events arrive one by one",
            "分别直连服务器和经代理用 curl -N 发送同一流式请求：两者首个事件同时到达，且事件逐个到来",
        ),
        confidence=0.95 if gap.server is not None and gap.itl_server is not None and len(rows) >= 3 else 0.8,
        weight="degraded",
        explains=("F1", "F13", "F15", "F3", "F6", "F8"),
    )


def _in_one_piece(rows: list[RequestRow]) -> bool:
    """Probes that count the pieces in which the events of a stream arrived: nearly all events came at once."""
    counted = [(pieces, events) for row in rows if (pieces := row.number("pieces")) and (events := row.number("events"))]
    return bool(counted) and all(events >= 4 * pieces for pieces, events in counted)


def _in_lumps(rows: list[RequestRow], gap: Gap) -> bool | None:
    """Whether tokens arrive in lumps; None when nothing tells."""
    pieces = [(row.number("pieces", "chunks"), row.number("events", *OUTPUT_TOKENS)) for row in rows]
    counted = [(piece, event) for piece, event in pieces if piece and event]
    if counted and median(piece / event for piece, event in counted) < _BURST:
        return True
    if gap.itl_client is not None and gap.itl_server is not None and gap.itl_server > 0:
        return gap.itl_client < _BURST * gap.itl_server
    if gap.itl_client is not None and gap.whole:
        return gap.itl_client < 0.005 and gap.client >= 0.9 * gap.whole
    if counted:
        return False
    at_once = gap.whole is not None and gap.server is not None and gap.client >= 0.85 * gap.whole and gap.server < 0.3 * gap.client
    return True if at_once else None


def _gap_words(gap: Gap) -> tuple[str, str]:
    if gap.itl_client is None or gap.itl_server is None:
        return "", ""
    a, b = gap.itl_server * 1e3, gap.itl_client * 1e3
    return f"; between tokens {a:.0f} ms at the server but {b:.0f} ms at the client, so they come in bursts", f"；token 间隔在服务器为 {a:.0f} ms，在客户端只有 {b:.0f} ms，说明是成批到达"


def _proxy(case: Case) -> tuple[str, str, str]:
    """The proxy that the context or the table's title names, with its setting; nginx's setting when none is named."""
    texts = [case.context.text("said"), case.launch.command, *map(str, case.context.members("files")), *map(str, case.context.items("host.probes"))]
    texts += [str(process) for process in case.context.items("host.processes")] + [str(listener) for listener in case.context.items("host.listeners")]
    text = " ".join(texts).lower()
    for word, (name, setting) in _PROXIES.items():
        if word in text:
            return name, name, setting
    return _UNNAMED.en, _UNNAMED.zh, _PROXIES["nginx"][1]


def connecting(case: Case) -> Found | None:
    rows = [row for row in case.requests if row.seconds(*AT_CLIENT) is not None]
    gap = _gap(rows) if rows else None
    if gap is None:
        return None
    connect, tls = medians(rows, *_CONNECT), medians(rows, *_TLS)
    measured = (connect or 0.0) + (tls or 0.0)
    if measured >= max(0.05, 0.4 * gap.client):
        parts = ", ".join(f"{name} {value:.2f} s" for name, value in (("connect", connect), ("TLS", tls)) if value is not None)
        return _connecting(rows, gap, f"{measured:.2f} s ({parts})", f"{measured:.2f} 秒（{parts}）", 0.85)
    if gap.server is None or gap.client - gap.server < max(0.15, 2 * gap.server):
        return None
    same_pace = gap.itl_client is not None and gap.itl_server is not None and gap.itl_client >= 0.6 * gap.itl_server
    gaps = [(row.seconds(*AT_CLIENT) or 0.0) - (row.seconds(*AT_SERVER) or 0.0) for row in rows if row.seconds(*AT_SERVER) is not None]
    constant = len(gaps) >= 3 and max(gaps) < 2 * max(0.01, min(gaps))
    if not same_pace or not constant or median(gaps) > 3.0:
        return None
    return _connecting(rows, gap, f"{median(gaps):.2f} s before the request reaches the server, the same in every request", f"{median(gaps):.2f} 秒发生在请求到达服务器之前，每个请求都一样", 0.65)


def _connecting(rows: list[RequestRow], gap: Gap, share: str, share_zh: str, confidence: float) -> Found:
    server = f"; the server needs {gap.server:.2f} s" if gap.server is not None else ""
    server_zh = f"；服务器只需 {gap.server:.2f} 秒" if gap.server is not None else ""
    return Found(
        cause=Words(
            f"Connecting is counted in: of {gap.client:.2f} s to the first token at the client, {share}{server}. A new connection is made for every request.",
            f"计时包含了建立连接：客户端首 token {gap.client:.2f} 秒中，{share_zh}{server_zh}。每个请求都新建连接。",
        ),
        evidence=[rows[0].quote, *([rows[-1].quote] if len(rows) > 1 else [])],
        fixes=[
            Fix(Words("keep connections open: one client object for all requests (httpx.Client, requests.Session, one OpenAI client), keep-alive on in every proxy", "保持连接：所有请求共用一个客户端对象（httpx.Client、requests.Session、同一个 OpenAI 客户端），各级代理开启 keep-alive")),
            Fix(Words("connect by address to leave name resolution out, and end TLS near the client", "用 IP 地址连接以排除域名解析，并在靠近客户端处终止 TLS")),
        ],
        verify=Words(
            "curl -w '%{time_connect} %{time_appconnect} %{time_starttransfer}\\n' twice in one command: connect and TLS are 0 in the second",
            "在一条命令里用 curl -w '%{time_connect} %{time_appconnect} %{time_starttransfer}\\n' 请求两次：第二次的连接和 TLS 时间为 0",
        ),
        confidence=confidence,
        weight="degraded",
    )


def benchmark_queue(case: Case) -> Found | None:
    """The client holds requests back and its clock runs."""
    seen = first_token_of([row for row in case.requests if row.seconds(*AT_SERVER) is not None], case.context)
    command = case.launch.command
    limit = re.search(r"(?:max[-_]concurrency|concurrency|[-_]c)[ =]+(\d+)", command)
    for result in bench_results(case.log):
        ttft, held, asked = result.get("ttft_ms"), result.get("concurrency"), result.get("requests")
        if ttft and held and asked and asked > held and seen is not None and seen.total and not seen.rows and ttft / 1e3 > 3 * seen.total:
            seconds = result.get("seconds")
            return _held_back(ttft / 1e3, seen.total, held, asked, [result.quotes["ttft_ms"], result.quotes["concurrency"], *seen.quotes], asked / seconds if seconds else None)
    rows = [row for row in case.requests if row.seconds(*AT_CLIENT) is not None and row.seconds(*AT_SERVER) is not None]
    if len(rows) < 6:
        return None
    gaps = [(row.seconds(*AT_CLIENT) or 0.0) - (row.seconds(*AT_SERVER) or 0.0) for row in rows]
    third = len(gaps) // 3
    grows = median(gaps[-third:]) > 3 * max(0.2, median(gaps[:third]))
    server_fine = (medians(rows, *QUEUE) or 0.0) < 0.5 and (medians(rows, *PREFILL) or 0.0) < median(gaps)
    same_pace = (medians(rows, *GAP_CLIENT) or 1.0) >= 0.6 * (medians(rows, *GAP_SERVER) or 0.0)
    if not (grows and server_fine and same_pace):
        return None
    server = medians(rows, *AT_SERVER) or 0.0
    held_rows = float(limit[1]) if limit else None
    return _held_back(gaps[-1] + server, server, held_rows, float(len(rows)), [rows[0].quote, rows[-1].quote])


def _held_back(client: float, server: float, held: float | None, asked: float, quotes: list[Quote], rate: float | None = None) -> Found:
    limit = f" (at most {held:g} of {asked:g} at once)" if held else f" ({asked:g} requests)"
    limit_zh = f"（{asked:g} 个请求，最多同时 {held:g} 个）" if held else f"（{asked:g} 个请求）"
    return Found(
        cause=Words(
            f"The benchmark client holds requests back{limit} while their clocks run: {client:.2f} s to the first token at the client against {server:.2f} s at the server. The server is not that slow.",
            f"基准测试客户端压住了请求{limit_zh}，而计时已经开始：客户端首 token {client:.2f} 秒，服务器只有 {server:.2f} 秒。服务器并没有那么慢。",
        ),
        evidence=quotes,
        fixes=[
            Fix(Words("read the first token from the server's histogram instead", "改看服务器端直方图中的首 token 时间"), "curl -s http://127.0.0.1:8000/metrics | grep time_to_first_token_seconds"),
            Fix(Words("or measure at a request rate that the server keeps up with, without a limit on concurrency", "或以服务器跟得上的请求速率测量，不限制并发"), f"--request-rate {rate * 0.8:.2f}" if rate else None),
        ],
        verify=Words("server-side vllm:time_to_first_token_seconds (sum / count over the run) equals what is reported", "服务器端 vllm:time_to_first_token_seconds（测试期间 sum / count）与报告值一致"),
        confidence=0.85 if held else 0.65,
        weight="degraded",
        explains=("F13",),
    )


RULES: Final = (
    Rule(
        id="F5",
        proof="live",
        title=Words("A proxy buffers the stream", "代理在缓冲流式响应"),
        symptoms=Words("the first token at the client about equals the whole answer, bursts, inter-token time at the client far below the server's", "客户端首 token 约等于整个回答的时间、成批到达、客户端 token 间隔远小于服务器"),
        why=Words("the proxy collects 16 KiB or so before it sends", "代理攒够约 16 KiB 才发送"),
        needs=Words("first-token and inter-token times at server and client", "服务器和客户端的首 token 与 token 间隔时间"),
        remedy=Words("`proxy_buffering off`, `X-Accel-Buffering: no`, no compression of event streams", "`proxy_buffering off`、`X-Accel-Buffering: no`、不压缩事件流"),
        check=Words("`curl -N` directly and through the proxy", "直连与经代理各用一次 `curl -N`"),
        judge=buffering_proxy,
    ),
    Rule(
        id="F13",
        title=Words("Connecting and TLS are counted in", "计时包含了建立连接和 TLS"),
        symptoms=Words("a constant difference between client and server before the first token", "客户端与服务器首 token 之间有固定差值"),
        why=Words("each request opens a connection", "每个请求都新建连接"),
        needs=Words("connect and TLS times, times at both ends", "连接与 TLS 时间、两端的耗时"),
        remedy=Words("keep-alive, one client object", "keep-alive、共用客户端对象"),
        check=Words("per-phase times of one request", "单个请求各阶段耗时"),
        judge=connecting,
    ),
    Rule(
        id="F15",
        title=Words("The benchmark's own queue is counted in", "计时包含了基准测试客户端自己的排队"),
        symptoms=Words("`max_concurrency` holds requests back in the client while the clock runs", "`max_concurrency` 在客户端压住请求而计时已开始"),
        why=Words("the client starts its clock before it sends", "客户端在发送之前就开始计时"),
        needs=Words("the benchmark's result and the server's histogram", "基准测试结果与服务器端直方图"),
        remedy=Words("server-side time to first token; a request rate instead of a concurrency limit", "用服务器端首 token 时间；用请求速率代替并发上限"),
        check=Words("server-side time to first token", "服务器端首 token 时间"),
        judge=benchmark_queue,
        sees=BENCH_LINES,
    ),
)
