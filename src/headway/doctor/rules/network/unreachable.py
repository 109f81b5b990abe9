"""N19 and N20: the name does not resolve, or the first packet is never answered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.requests import RequestRow
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.network.no_connection import NO_ANSWER, NO_NAME, configured_target, of_callers, target_of
from headway.doctor.rules.network.server_address import port_of
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

CONNECT_TIME: Final = sight(
    "time_connect",
    pattern=r"time_connect\b['\"]?[=: ]+(?P<s>\d+(?:\.\d+)?)(?:.*?\btime_(?:starttransfer|total)\b['\"]?[=: ]+(?P<first>\d+(?:\.\d+)?))?",
)
_PROBED_CONNECT: Final = re.compile(
    r"(?i)\b(?:ping|rtt|round trip|connect)\b.*?(?P<value>\d+(?:\.\d+)?)(?:/(?P<mean>\d+(?:\.\d+)?)/\S*)? ?(?P<unit>ms|s)\b"
)
_SLOW_CONNECT: Final = 0.15  # seconds; across an ocean a connection takes about as long


def name_or_distance(case: Case) -> Found | None:
    """A name that is not resolved; else connecting takes a good part of the time to the first token."""
    hits = [hit for hit in of_callers(case, NO_NAME) if hit.line.level != "WARNING" or hit.match.lastindex]
    if hits:
        last = hits[-1]
        name = next((value for value in last.match.groups() if value), "")
        if not name and (target := target_of(last.line.text) or configured_target(case)):
            name = target[0]
        names = _known_names(case)
        near = next(iter(get_close_matches(name, names, 1, 0.6)), "") if name else ""
        if not near and len(names) == 1 and "." not in name and name != names[0]:  # the one service that serves here
            near = names[0]
        passing = "Temporary failure" in last.line.text or "EAI_AGAIN" in last.line.text
        how = Words(
            "the resolver does not answer (temporary failure)" if passing else "no resolver knows it",
            "解析器没有应答（暂时失败）" if passing else "没有解析器认识它",
        )
        meant = Words(f"; {near} exists" if near else "", f"；存在 {near}" if near else "")
        fixes = (
            [Fix(Words("use the name that exists", "使用存在的名字"), f"base_url=http://{near}:{port_of(case)}/v1")]
            if near
            else []
        )
        fixes.append(
            Fix(
                Words(
                    "correct the name in the caller's address: inside Docker Compose it is the service, in Kubernetes service.namespace.svc, and both must share a network",
                    "更正调用方地址中的名字：Docker Compose 中用服务名，Kubernetes 中用 service.namespace.svc，且双方须在同一网络",
                ),
                f"getent hosts {name}" if name else "cat /etc/resolv.conf",
            )
        )
        if passing:
            fixes.append(
                Fix(
                    Words("repair the resolver of that machine or container", "修复该机器或容器的解析器"),
                    "cat /etc/resolv.conf; resolvectl status",
                )
            )
        return Found(
            cause=Words(
                f"The name {name or 'of the server'} cannot be resolved where the caller runs: {how.en}{meant.en}. The server was never reached.",
                f"在调用方所在处无法解析{f'名字 {name}' if name else '服务器的名字'}：{how.zh}{meant.zh}。请求从未到达服务器。",
            ),
            evidence=quoted(last, hits[0]),
            fixes=fixes,
            verify=Words(
                f"`getent hosts {name}` prints an address at the caller's place"
                if name
                else "`getent hosts`, given the name in the caller's base URL, prints an address",
                f"在调用方位置 `getent hosts {name}` 输出地址"
                if name
                else "用调用方 base URL 中的名字运行 `getent hosts` 会输出地址",
            ),
            confidence=0.92 if name else 0.8,
            explains=("N1",),
        )
    return _far(case)


def _known_names(case: Case) -> list[str]:
    """Names of containers and services that the log or the context shows."""
    names = {
        str(member.get("name"))
        for member in case.context.items("host.processes")
        if isinstance(member, Mapping) and member.get("name")
    }
    if case.startup.hit is not None and (
        found := re.fullmatch(r"([a-z][\w\-]*?)(?:[-_]\d+)?", case.startup.hit.line.process)
    ):
        names.add(found[1])
    return sorted(names)


def _connects(row: RequestRow) -> float | None:
    seconds = row.number("connect_s", "tcp_s", "time_connect", "connect")
    thousandths = row.number("connect_ms", "tcp_ms", "rtt_ms", "ping_ms")
    return seconds if seconds is not None else None if thousandths is None else thousandths / 1000


def _measured(case: Case) -> list[tuple[Quote, float, float | None]]:
    """(quote, seconds to connect, seconds to the first token): of requests, of curl's own times, of probes."""
    rows = [
        (row.quote, seconds, row.number("ttft_cli_s", "ttft_s", "first_token_s", "total_s"))
        for row in case.requests
        if (seconds := _connects(row)) is not None
    ]
    if len(rows) > 1:
        return rows
    if hits := case.log.hits(CONNECT_TIME):
        return [(hit.quote(), hit.number("s"), hit.number("first") if hit["first"] else None) for hit in hits]
    probes = [
        (f"host.probes.{index}", _PROBED_CONNECT.search(str(text)))
        for index, text in enumerate(case.context.items("host.probes"))
    ]
    return [
        (
            case.context.quote(path),
            float(found["mean"] or found["value"]) / (1000 if found["unit"].lower() == "ms" else 1),
            None,
        )
        for path, found in probes
        if found and not re.search(r"(?i)timed out|refused|fail", case.context.text(path))
    ]


def _far(case: Case) -> Found | None:
    slow = _measured(case)
    if not slow:
        return None
    seconds = sorted(value for _, value, _ in slow)[len(slow) // 2]
    first = [value for _, _, value in slow if value is not None]
    if seconds < _SLOW_CONNECT:
        return None
    whole = sorted(first)[len(first) // 2] if first else None
    share = Words(
        f", {100 * seconds / whole:.0f} % of the {whole:.2f} s to the first token" if whole else "",
        f"，占首 token {whole:.2f} s 的 {100 * seconds / whole:.0f} %" if whole else "",
    )
    return Found(
        cause=Words(
            f"Connecting alone takes {seconds:.2f} s{share.en}: the distance (or a slow resolver) costs the time, not the server.",
            f"仅建立连接就需要 {seconds:.2f} s{share.zh}：耗时来自距离（或缓慢的解析），而不是服务器。",
        ),
        evidence=[quote for quote, _, _ in slow[:3]],
        fixes=[
            Fix(
                Words(
                    "keep connections open and reuse them (one client object for all calls)",
                    "保持并复用连接（所有调用共用一个客户端对象）",
                )
            ),
            Fix(
                Words(
                    "or bring caller and server nearer to each other (same region)",
                    "或让调用方与服务器更近（同一区域）",
                )
            ),
        ],
        verify=Words(
            "`curl -o /dev/null -s -w '%{time_namelookup} %{time_connect} %{time_starttransfer}'` shows a small time_connect",
            "`curl -o /dev/null -s -w '%{time_namelookup} %{time_connect} %{time_starttransfer}'` 显示较小的 time_connect",
        ),
        confidence=0.75,
        weight="degraded",
        title=Words("Connecting is slow", "建立连接缓慢"),
    )


def packets_are_dropped(case: Case) -> Found | None:
    """A connection that is neither accepted nor refused: something between drops the packets."""
    hits = [hit for hit in of_callers(case, NO_ANSWER) if "reading response header" not in hit.line.text]
    if not hits:
        return _probed(case)
    last = hits[-1]
    target = next((found for hit in reversed(hits) if (found := target_of(hit.line.text))), None)
    host = target[0] if target else ""
    port = target[1] if target else port_of(case)
    rejected = re.search(r"No route to host|EHOSTUNREACH", last.line.text)
    unrouted = "Network is unreachable" in last.line.text
    inside = next(
        (
            member
            for member in case.context.items("host.probes")
            if re.search(r"(?i)localhost|127\.0\.0\.1|on the server", str(member))
            and re.search(r"\b200\b|ok|succe", str(member))
        ),
        None,
    )
    works = Words(
        f" On the server itself it answers ({inside})." if inside else "",
        f"在服务器本机上它能应答（{inside}）。" if inside else "",
    )
    how = (
        Words("is answered with `no route to host`, which firewalls send that reject", "得到 `no route to host`，这是防火墙拒绝时的回应") if rejected
        else Words("has no route from the caller's network", "从调用方网络没有路由") if unrouted
        else Words("is never answered (time-out, not refused)", "始终没有应答（超时，而不是被拒绝）")
    )  # fmt: skip
    return Found(
        cause=Words(
            f"A connection to {host or 'the server'} port {port} {how.en}: a firewall, security group or network policy on the way drops it.{works.en} A server that is down would refuse at once.",
            f"到 {host or '服务器'} 端口 {port} 的连接{how.zh}：途中的防火墙、安全组或网络策略丢弃了它。{works.zh}如果只是服务器没启动，会立即被拒绝。",
        ),
        evidence=quoted(last, hits[0]),
        fixes=[
            Fix(
                Words(
                    f"open port {port} for the caller's address in the firewall of the server (or the security group, the NetworkPolicy)",
                    f"在服务器防火墙（或安全组、NetworkPolicy）中为调用方地址开放端口 {port}",
                ),
                _opened(case, host, port),
            ),
            Fix(
                Words(
                    "see where it is dropped: probe from the caller and from the server's own network",
                    "查看在哪里被丢弃：分别从调用方和服务器所在网络探测",
                ),
                f"nc -zv -w 5 {host or '127.0.0.1'} {port}",
            ),
        ],
        verify=Words(
            f"`nc -zv -w 5 {host or '127.0.0.1'} {port}` from the caller's place says succeeded",
            f"从调用方位置执行 `nc -zv -w 5 {host or '127.0.0.1'} {port}` 显示 succeeded",
        ),
        confidence=0.88 if target else 0.75,
        explains=("N1", "N7"),
    )


_PROBE: Final = re.compile(
    r"(?i)(?:\bnc\b|telnet|\btcp\b|connect(?:ion)? to).*(?:timed out|time-?out|filtered|no route)|curl.*(?:connection timed out|no route)"
)


def _probed(case: Case) -> Found | None:
    """Only a check that somebody made says it; the log of the server shows no request."""
    index = next(
        (index for index, text in enumerate(case.context.items("host.probes")) if _PROBE.search(str(text))), None
    )
    if index is None:
        return None
    path = f"host.probes.{index}"
    pair = re.search(r"(?<![\w.\-])([A-Za-z0-9][\w.\-]*) (\d{2,5})(?![\w.])", case.context.text(path))
    target = target_of(case.context.text(path)) or ((pair[1], int(pair[2])) if pair else None)
    host, port = target if target else ("", port_of(case))
    return Found(
        cause=Words(
            f"The check of port {port}{f' of {host}' if host else ''} from the caller's place timed out instead of being refused: a firewall, security group or network policy drops the packets.",
            f"从调用方位置检测{f' {host} 的' if host else ''}端口 {port} 超时而不是被拒绝：防火墙、安全组或网络策略丢弃了数据包。",
        ),
        evidence=[case.context.quote(path)],
        fixes=[
            Fix(
                Words(
                    f"open port {port} for the caller's address in the firewall of the server",
                    f"在服务器防火墙中为调用方地址开放端口 {port}",
                ),
                _opened(case, host, port),
            )
        ],
        verify=Words(
            f"`nc -zv -w 5 {host or '127.0.0.1'} {port}` from the caller's place says succeeded",
            f"从调用方位置执行 `nc -zv -w 5 {host or '127.0.0.1'} {port}` 显示 succeeded",
        ),
        confidence=0.8,
    )


def _source(case: Case) -> str:
    """The caller's address, when the context names it."""
    return case.context.text("host.client_address")


# private networks, by the start of an address in them
_NETWORKS: Final = (
    (r"10\.", "10.0.0.0/8"),
    (r"192\.168\.", "192.168.0.0/16"),
    (r"172\.(?:1[6-9]|2\d|3[01])\.", "172.16.0.0/12"),
)


def _opened(case: Case, host: str, port: int) -> str:
    """For the caller, else for the private network of the server; else for the first private one."""
    source = _source(case) or next((network for start, network in _NETWORKS if re.match(start, host)), "10.0.0.0/8")
    return f"sudo ufw allow proto tcp from {source} to any port {port}"


RULES: Final = (
    Rule(
        id="N19",
        title=Words("The server's name does not resolve", "服务器名无法解析"),
        symptoms=Words("resolution errors, or a slow connect", "解析错误，或连接缓慢"),
        why=Words(
            "a misspelt name, another network, a resolver that does not answer, or distance",
            "名字拼写错误、网络不同、解析器无应答，或距离过远",
        ),
        needs=Words("the resolver's answer, ping, the time to connect", "解析结果、ping、连接耗时"),
        remedy=Words("the name, or the distance", "更正名字，或缩短距离"),
        check=Words("`getent hosts NAME` at the caller's place", "在调用方位置执行 `getent hosts NAME`"),
        judge=name_or_distance,
        sees=(NO_NAME, CONNECT_TIME),
    ),
    Rule(
        id="N20",
        title=Words("A firewall drops the connection", "防火墙丢弃了连接"),
        symptoms=Words("connects time out, `No route to host`", "连接超时、`No route to host`"),
        why=Words(
            "a firewall, security group or network policy drops the packets", "防火墙、安全组或网络策略丢弃了数据包"
        ),
        needs=Words("a probe of the port from both sides", "从两侧探测端口"),
        remedy=Words("open that port for that source", "为该来源开放该端口"),
        check=Words("`nc -zv HOST PORT`", "`nc -zv HOST PORT`"),
        judge=packets_are_dropped,
        sees=(NO_ANSWER,),
    ),
)
