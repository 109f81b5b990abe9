"""N1: nothing listens where the caller calls: not yet, not any more, not on that port, or not for that caller."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.facts.load import clock_seconds
from headway.doctor.finding import Abstention, Fix, Found
from headway.doctor.rules.network.no_connection import (
    EXITED,
    INSIDE_OK,
    PROBE_FAILED,
    PROBE_KILLS,
    PUBLISHED,
    REFUSED,
    RESET,
    of_callers,
    target_of,
)
from headway.doctor.rules.network.server_address import LISTENING, bound, listener_on, listeners, port_of, ready_line
from headway.doctor.rules.network.taken_address import bind_failed
from headway.doctor.rules.network.wrong_place import (
    LOOPBACK,
    compose_service,
    loopback_only,
    other_port,
    own_localhost,
    wrong_mapping,
)
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_OTHER_FAULT: Final = re.compile(
    r"timed out|after (?:[3-9]\d{3}|\d{5,}) ms|SSL|certificate|resolve|[Nn]ame or service|name resolution|getaddrinfo|No route to host|nodename"
    r"|^\* +connect to"  # curl -v tries the next address after it
)


_OF_THE_CALLER: Final = re.compile(
    r"Connect\w*Error|ConnectionRefusedError|APIConnectionError|NewConnectionError|RemoteProtocolError"
)


def refused(case: Case) -> Found | Abstention | None:
    """The reasons are tried by how well they are shown; a server that crashed is its own error's case."""
    calls = [hit for hit in of_callers(case, REFUSED) if not _OTHER_FAULT.search(hit.line.text)]
    resets = of_callers(case, RESET)
    if not calls and not (resets and case.log.sees(PUBLISHED)):
        return None
    first, last = (calls or resets)[0], (calls or resets)[-1]
    for reason in _REASONS:
        if found := reason(case, first, last):
            return found
    return None


def _probe_kills(case: Case, first: Hit, last: Hit) -> Found | None:
    """The orchestrator ends the container while it still loads."""
    kill, probe = case.log.first(PROBE_KILLS), case.log.first(PROBE_FAILED)
    if kill is None or (
        case.startup.ready and case.startup.hit is not None and case.startup.hit.line.number < kill.line.number
    ):
        return None
    kind = (probe["kind"] if probe else "Liveness").lower()
    kind_zh = {"liveness": "存活", "startup": "启动", "readiness": "就绪"}[kind]
    return Found(
        cause=Words(
            f"The server is still loading when the {kind} probe, which is refused, runs out of tries: Kubernetes ends the container and the load starts over, again and again.",
            f"服务器仍在加载时，被拒绝的{kind_zh}探针耗尽了重试次数：Kubernetes 杀死容器，加载反复从头开始。",
        ),
        evidence=quoted(kill, probe, last),
        fixes=[
            Fix(
                Words(
                    "give the container a startup probe on /health that waits for the load; liveness begins only after it",
                    "为容器配置检查 /health 的 startupProbe 以等待加载，存活探针在其之后才开始",
                ),
                "startupProbe: {httpGet: {path: /health, port: PORT}, periodSeconds: 10, failureThreshold: 120}".replace(
                    "PORT", str(port_of(case))
                ),
            ),
        ],
        verify=Words(
            "`kubectl get pod` shows RESTARTS unchanged and READY 1/1 after the load",
            "加载完成后 `kubectl get pod` 的 RESTARTS 不变，READY 为 1/1",
        ),
        confidence=0.9,
        title=Words("A probe ends the server while it is still loading", "探针在服务器仍在加载时将其杀死"),
    )


def _loading(case: Case, first: Hit, last: Hit) -> Found | None:
    """Refused before the server was ready. If it became ready and nothing was refused afterwards, it is over."""
    if not case.startup.stage and (case.launch.program == "" or list(case.log.sources) == ["probes"]):
        return None  # without the server's own log nothing shows that it is loading; the doctor's probes quote process names only
    ready = ready_line(case)
    if ready is not None and ready.line.number < first.line.number:
        return None
    over = ready is not None and ready.line.number > last.line.number
    ended = [hit for hit in case.log.hits(EXITED) if hit["code"] not in ("", "0")]
    gave_up = [hit for hit in ended if hit["name"] == last.line.process or not last.line.process]
    crashed = [
        hit
        for hit in case.exceptions.first
        if hit.line.process
        and not hit.line.process.startswith(last.line.process or "\0")
        and hit.line.number < last.line.number
    ]
    if crashed or len(ended) > len(gave_up) or bind_failed(case) is not None:
        return None
    stage = case.startup
    begun, until = clock_seconds(first.line.clock), clock_seconds(last.line.clock)
    spent = Words(
        f" for {until - begun:.0f} s" if begun is not None and until is not None and until > begun else "",
        f"了 {until - begun:.0f} 秒" if begun is not None and until is not None and until > begun else "",
    )
    count = case.log.count(REFUSED)
    progress = stage.hit
    reached = Words(
        f" (last stage: {stage.stage})" if stage.stage else "", f"（最后阶段：{stage.stage}）" if stage.stage else ""
    )
    if over and not gave_up:
        return Found(
            cause=Words(
                f"{count} calls were refused while the server was still loading; it became ready afterwards, so this is over.",
                f"服务器仍在加载时有 {count} 次调用被拒绝；之后它已就绪，问题已过去。",
            ),
            evidence=quoted(first, ready),
            fixes=[_WAIT],
            verify=_READY,
            confidence=0.4,
            weight="remark",
        )
    port = port_of(case)
    return Found(
        cause=Words(
            f"The server is still loading{reached.en} and does not listen yet; the caller tried {count} times{spent.en} and gave up. A listen address or a firewall has nothing to do with it.",
            f"服务器仍在加载{reached.zh}，尚未开始监听；调用方尝试{spent.zh}共 {count} 次后放弃。这与监听地址或防火墙无关。",
        ),
        evidence=quoted(first, last, progress, gave_up[-1] if gave_up else None),
        fixes=[
            Fix(
                Words(
                    "let the caller wait until /health answers 200, that is on `healthy`, not on start",
                    "让调用方等到 /health 返回 200，即依赖“健康”而不是“已启动”",
                ),
                f"until curl -sf http://127.0.0.1:{port}/health; do sleep 2; done",
            ),
            Fix(
                Words(
                    "in Docker Compose: a health check, and depends_on with condition service_healthy",
                    "Docker Compose：配置 healthcheck，并用 depends_on 的 condition: service_healthy",
                ),
                "depends_on: {vllm: {condition: service_healthy}}".replace("vllm", compose_service(case)),
            ),
        ],
        verify=_READY,
        confidence=0.9,
        title=Words("The server is still loading", "服务器仍在加载"),
    )


_WAIT: Final = Fix(Words("let callers wait until /health answers 200", "让调用方等到 /health 返回 200"))
_READY: Final = Words(
    "curl of /health from the caller's place prints 200 before the first call",
    "首次调用之前，从调用方位置 curl /health 返回 200",
)


def _crashed(case: Case, first: Hit, last: Hit) -> Found | None:
    """The server ended: the refusal is its consequence."""
    gone = case.log.first(EXITED)
    error = next((hit for hit in case.exceptions.first if not _OF_THE_CALLER.search(hit["type"])), None)
    serving = case.startup.stage != ""
    if bind_failed(case) is not None or not serving or (gone is None and error is None):
        return None
    cause_at = gone or error
    return Found(
        cause=Words(
            "The server has ended (see the first error above), so that nothing listens; the refused calls are the consequence.",
            "服务器已退出（见上方第一个错误），因此没有程序在监听；连接被拒绝只是后果。",
        ),
        evidence=quoted(cause_at, last),
        fixes=[
            Fix(Words("repair the first error of the server and start it again", "修复服务器的第一个错误后重新启动"))
        ],
        verify=_READY,
        confidence=0.5,
    )


def _nobody(case: Case, first: Hit, last: Hit) -> Found | Abstention | None:
    """Only the callers are known: the message itself says that nothing listens there."""
    target = target_of(last.line.text) or target_of(first.line.text)
    ready = ready_line(case)
    inside = bound(case)
    if (
        ready is not None
        and inside is not None
        and ready.line.number < last.line.number
        and (target is None or target[1] == inside[1])
    ):
        return Abstention(
            Words(
                "calls are refused although the server says that it listens; `ss -ltnp` at the server and a curl from the caller's place would show which address differs",
                "服务器显示已监听，但调用仍被拒绝；在服务器上运行 `ss -ltnp`，并从调用方位置 curl，可看出哪个地址不同",
            ),
            quoted(last, case.log.last(LISTENING)),
        )
    if target is None:
        if case.startup.stage:
            return None
        target = ("127.0.0.1", port_of(case))
        confidence = 0.6
    else:
        confidence = 0.7
    host, port = target
    # the context's listeners are those of the caller's own machine
    there = listeners(case) if host in LOOPBACK else []
    known = listener_on(case, port) if there else None
    within = host in LOOPBACK and (case.context.get("host.in_container") is True)
    own = Words(
        f" {host} inside a container is the container itself." if within else "",
        f"容器内的 {host} 指容器自身。" if within else "",
    )
    other = next(
        (listener for listener in there if re.search(r"vllm|headway|llama|sglang|uvicorn", listener.command)), None
    )
    seen = Words(
        f" Its server listens on port {other.port} ({other.address})."
        if other and known is None
        else " Nothing is listening there."
        if there and known is None
        else "",
        f"服务器监听在端口 {other.port}（{other.address}）。"
        if other and known is None
        else "那里没有任何监听。"
        if there and known is None
        else "",
    )
    if other is not None and known is None:
        fixes = [
            Fix(
                Words("call the port that the server listens on", "调用服务器实际监听的端口"),
                f"base_url=http://{host}:{other.port}/v1",
            )
        ]
    else:
        fixes = []
    if within:
        fixes.append(
            Fix(
                Words("call the server by its service name or by the host's address", "用服务名或宿主机地址调用服务器"),
                f"base_url=http://host.docker.internal:{port}/v1",
            )
        )
    fixes.append(
        Fix(
            Words(
                "see whether the server runs and on which address and port it listens; start it, or wait for /health while it loads",
                "查看服务器是否在运行、监听哪个地址和端口；启动它，或在加载期间等待 /health",
            ),
            f"ss -ltnp 'sport = :{port}'; curl -s http://{host}:{port}/health",
        )
    )
    if host not in LOOPBACK and case.log.sources == (
        "probes",
    ):  # seen from outside, where a loopback bind looks the same
        fixes.append(
            Fix(
                Words(
                    "if `ss` shows it on 127.0.0.1 there, let it listen on an address that callers reach, behind an API key or a firewall rule",
                    "若 `ss` 显示它只监听 127.0.0.1，则改为监听调用方可达的地址，并用 API 密钥或防火墙规则保护",
                ),
                f"--host 0.0.0.0 --port {port}",
            )
        )
    return Found(
        cause=Words(
            f"Nothing listens on port {port} of {host}: the server there is not started, still loading, ended, or listens on another port or address.{own.en}{seen.en}",
            f"{host} 的端口 {port} 没有监听：服务器未启动、仍在加载、已退出，或监听在其他端口或地址。{own.zh}{seen.zh}",
        ),
        evidence=quoted(first, last) + ([case.context.quote(other.place)] if other and known is None else []),
        fixes=fixes,
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://{host}:{port}/health` prints 200 from the caller's place",
            f"从调用方位置执行 `curl -s -o /dev/null -w '%{{http_code}}' http://{host}:{port}/health` 输出 200",
        ),
        confidence=0.75 if other and known is None else confidence,
    )


_REASONS: Final[tuple[Callable[[Case, Hit, Hit], Found | Abstention | None], ...]] = (
    wrong_mapping,
    loopback_only,
    own_localhost,
    _probe_kills,
    _loading,
    _crashed,
    other_port,
    _nobody,
)

RULES: Final = (
    Rule(
        id="N1",
        proof="live",
        title=Words("Connection refused", "连接被拒绝"),
        symptoms=Words(
            "`Connection refused`, a reset on a published port", "`Connection refused`、映射端口上连接被重置"
        ),
        why=Words(
            "still loading, crashed, another port or bind address, a wrong container mapping",
            "仍在加载、已崩溃、端口或监听地址不同、容器映射错误",
        ),
        needs=Words(
            "whether the process lives, how far it loaded, the listening socket, the mapping, curl from inside",
            "进程是否存活、加载进度、监听套接字、映射、容器内 curl",
        ),
        remedy=Words("wait for /health, or correct the mapping or address", "等待 /health，或更正映射或地址"),
        check=Words("curl from the caller's place", "从调用方位置 curl"),
        judge=refused,
        sees=(REFUSED, RESET, PUBLISHED, INSIDE_OK, EXITED, PROBE_FAILED, PROBE_KILLS, LISTENING),
    ),
)
