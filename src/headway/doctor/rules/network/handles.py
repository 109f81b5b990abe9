"""N15: no file handles left, or no client ports."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_HANDLES: Final = sight(
    "Too many open files",
    "EMFILE",
    "out of system resource",
    "worker_connections are not enough",
    "[too_many_connections]",
    # vLLM's remark at the start that a low limit could lead to it is no event
    pattern=r"Too many open files(?!`\. Consider)|EMFILE|out of system resource|worker_connections are not enough|\[too_many_connections\]",
)
NO_PORTS: Final = sight("annot assign requested address", "EADDRNOTAVAIL", "an't assign requested address")
_DIALING: Final = ("connect", "dial", "HTTPConnectionPool", "Max retries", "NewConnectionError", "EADDRNOTAVAIL")
_ENOUGH: Final = 65536


def handles_exhausted(case: Case) -> Found | None:
    """The limit of open files against what connections need; client ports when dialling (not binding) fails."""
    hit = case.log.first(NO_HANDLES)
    if hit is not None:
        return _handles(case)
    dialing = [
        found
        for found in case.log.hits(NO_PORTS)
        if "bind" not in found.line.text and any(sign in found.line.text for sign in _DIALING)
    ]
    if not dialing:
        return None
    return Found(
        cause=Words(
            f"The client machine has no free port for another connection ({case.log.count(NO_PORTS)} times): it opens a new connection for each request, and closed ones stay in TIME_WAIT for a minute. The server is not involved.",
            f"客户端机器没有空闲端口可用于新连接（{case.log.count(NO_PORTS)} 次）：它为每个请求都新建连接，而关闭的连接会在 TIME_WAIT 停留一分钟。与服务器无关。",
        ),
        evidence=quoted(dialing[0], dialing[-1]),
        fixes=[
            Fix(
                Words(
                    "reuse connections: one client object (session) for all requests",
                    "复用连接：所有请求共用一个客户端对象（会话）",
                ),
                "httpx.Client(limits=httpx.Limits(max_keepalive_connections=100))",
            ),
            Fix(
                Words("and widen the range of client ports", "并扩大客户端端口范围"),
                "sudo sysctl -w net.ipv4.ip_local_port_range='1024 65000' net.ipv4.tcp_tw_reuse=1",
            ),
        ],
        verify=Words(
            "`ss -tan state time-wait | wc -l` stays below some thousands under the same load",
            "相同负载下 `ss -tan state time-wait | wc -l` 保持在数千以内",
        ),
        confidence=0.88 if len(dialing) > 1 else 0.65,
        title=Words("Client ports are used up", "客户端端口耗尽"),
    )


def _handles(case: Case) -> Found:
    hit = next(
        (found for found in case.log.hits(NO_HANDLES) if "open files" in found.line.text), None
    ) or case.log.first(NO_HANDLES)
    soft, hard = (case.context.number(f"host.limits.{name}") for name in ("nofile_soft", "nofile_hard"))
    soft = soft if soft is not None else case.context.number("host.limits.nofile")
    wanted = int(min(_ENOUGH, hard)) if hard and hard > (soft or 0) else _ENOUGH
    busy = max(((sample.running or 0) + (sample.waiting or 0) for sample in case.load), default=0)
    limit = Words(
        f"the limit is {soft:.0f} open files" if soft else "the limit of open files is reached",
        f"上限是 {soft:.0f} 个打开文件" if soft else "已达到打开文件数上限",
    )
    need = Words(
        f", and {busy:.0f} requests (running and waiting) hold a connection each" if busy else "",
        f"，而 {busy:.0f} 个请求（运行与等待）各占一个连接" if busy else "",
    )
    nginx = "worker_connections" in (hit.line.text if hit else "")
    if nginx:
        limit = Words(
            "the connections of the proxy (worker_connections) are used up", "代理的连接数（worker_connections）已用完"
        )
    fixes = [
        Fix(
            Words(
                f"raise the limit of open files to {wanted} for the server's process",
                f"把服务器进程的打开文件上限提高到 {wanted}",
            ),
            f"ulimit -n {wanted}",
        ),
        Fix(
            Words("as a service or container: set the limit there", "作为服务或容器运行时：在那里设置上限"),
            f"LimitNOFILE={_ENOUGH}   # systemd; docker run --ulimit nofile={_ENOUGH}:{_ENOUGH}",
        ),
        Fix(
            Words(
                "and let clients reuse connections instead of opening one per request",
                "并让客户端复用连接，而不是每个请求新建一个",
            )
        ),
    ]
    if nginx:
        fixes.insert(
            0,
            Fix(
                Words("raise the proxy's connections", "提高代理的连接数"),
                f"worker_connections {wanted // 2}; worker_rlimit_nofile {wanted};",
            ),
        )
    return Found(
        cause=Words(
            f"The process has no file handles left: {limit.en}{need.en}. Other errors after it (cancelled tasks, short answers, 500) are consequences.",
            f"进程的文件句柄已用完：{limit.zh}{need.zh}。其后的其他错误（任务取消、回答变短、500）都是后果。",
        ),
        evidence=quoted(hit) + ([case.context.quote("host.limits")] if case.context.has("host.limits") else []),
        fixes=fixes,
        verify=Words(
            "`grep 'open files' /proc/$(pgrep -f -o 'serve')/limits` shows the new limit, and `ls /proc/$(pgrep -f -o 'serve')/fd | wc -l` stays below it",
            "`grep 'open files' /proc/$(pgrep -f -o 'serve')/limits` 显示新上限，且 `ls /proc/$(pgrep -f -o 'serve')/fd | wc -l` 低于它",
        ),
        confidence=STATED,
        explains=("N1", "N6", "N7", "N16", "T1"),
    )


RULES: Final = (
    Rule(
        id="N15",
        title=Words("File handles or ports are used up", "文件句柄或端口耗尽"),
        symptoms=Words(
            "`[Errno 24] Too many open files`, then random failures; client ports used up",
            "`[Errno 24] Too many open files`，随后出现随机失败；客户端端口耗尽",
        ),
        why=Words("each connection needs a handle; the default limit is 1024", "每个连接需要一个句柄，默认上限为 1024"),
        needs=Words("the limits of the process and its connections", "进程的上限与连接数"),
        remedy=Words("ulimit -n 65536, reuse connections", "ulimit -n 65536、复用连接"),
        check=Words("the limit and the number of open handles in /proc", "/proc 中的上限与打开句柄数"),
        judge=handles_exhausted,
        sees=(NO_HANDLES, NO_PORTS),
    ),
)
