"""Reasons of a refused connection where the server runs: it listens at another place than the caller calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.network.no_connection import (
    INSIDE_OK,
    PUBLISHED,
    configured_target,
    target_of,
)
from headway.doctor.rules.network.published_ports import published_as, published_in
from headway.doctor.rules.network.server_address import Listener, bound, listener_on, port_of, ready_line
from headway.doctor.rules.quoted import quoted
from headway.doctor.words import Words

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def wrong_mapping(case: Case, first: Hit, last: Hit) -> Found | None:
    """A container publishes a port that nobody listens on inside."""
    inside = bound(case)
    port = inside[1] if inside else port_of(case)
    published = [(int(hit["outside"]), int(hit["inside"]), hit) for hit in case.log.hits(PUBLISHED)]
    quote = quoted(published[0][2]) if published else []
    pairs = [(outside, target) for outside, target, _ in published]
    if not pairs and (given := published_in(case.launch.command)):
        pairs, quote = [given], [case.context.quote("command")]
    if not pairs or any(target == port for _, target in pairs) or (inside is None and ready_line(case) is None):
        return None
    outside, target = pairs[0]
    works = case.log.first(INSIDE_OK)
    proof = Words(" Inside the container it answers." if works else "", "在容器内它能应答。" if works else "")
    return Found(
        cause=Words(
            f"The container publishes port {outside} to port {target} inside, but the server listens on port {port} there: nobody answers on {target}.{proof.en}",
            f"容器把端口 {outside} 映射到容器内的端口 {target}，但服务器在容器内监听端口 {port}：{target} 上无人应答。{proof.zh}",
        ),
        evidence=[*quoted(last), *quote, *quoted(works)][:4],
        fixes=[
            Fix(
                Words(
                    f"publish the port that the server listens on ({outside} -> {port})",
                    f"映射服务器实际监听的端口（{outside} -> {port}）",
                ),
                published_as(case.launch.command, outside, port),
            ),
            Fix(
                Words(f"or let the server listen on port {target} inside", f"或让服务器在容器内监听端口 {target}"),
                f"--port {target}",
            ),
        ],
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://localhost:{outside}/health` prints 200 on the host",
            f"在宿主机上 `curl -s -o /dev/null -w '%{{http_code}}' http://localhost:{outside}/health` 输出 200",
        ),
        confidence=0.95,
        title=Words("Wrong port mapping of the container", "容器端口映射错误"),
    )


def _listener_of_own_address(case: Case, target: tuple[str, int] | None) -> Listener | None:
    """Who listens on the dialled port, when the dialled address is one of the machine whose listeners are known."""
    own = [
        address
        for member in case.context.items("host.interfaces")
        if isinstance(member, Mapping)
        for address in member.get("addresses") or []
    ]
    return listener_on(case, target[1]) if target is not None and target[0] in own else None


def loopback_only(case: Case, first: Hit, last: Hit) -> Found | None:
    """The server listens on loopback and the caller is elsewhere."""
    inside = bound(case)
    told = case.launch.value("host")
    target = target_of(last.line.text)
    seen = _listener_of_own_address(case, target)
    at = inside[0] if inside else told or (seen.address if seen else "")
    if at not in LOOPBACK:
        return None
    published = case.log.first(PUBLISHED)
    elsewhere = (
        (target is not None and target[0] not in LOOPBACK)
        or published is not None
        or "-p " in case.launch.command
        or case.log.sees(INSIDE_OK)
    )
    if not elsewhere:
        return None
    port = seen.port if seen else port_of(case)
    return Found(
        cause=Words(
            f"The server listens on {at} only, and the caller is {'on the other side of a published port' if published else f'elsewhere (it dials {target[0]})' if target else 'elsewhere'}: from there nothing listens on port {port}.",
            f"服务器只监听 {at}，而调用方{'在映射端口的另一侧' if published else f'在别处（它连接 {target[0]}）' if target else '在别处'}：从那里看端口 {port} 没有监听。",
        ),
        evidence=quoted(last, inside[2] if inside else None, published)
        + ([case.launch.flags["host"].quote] if told and not inside else [])
        + ([case.context.quote(seen.place)] if seen else []),
        fixes=[
            Fix(
                Words(
                    "listen on the address that the caller can reach; protect it by an API key or a firewall rule for that caller",
                    "监听调用方可达的地址；并用 API 密钥或针对该调用方的防火墙规则保护",
                ),
                f"--host 0.0.0.0 --port {port}",
            )
        ],
        verify=Words(
            f"`ss -ltn 'sport = :{port}'` shows 0.0.0.0:{port}, and curl of /health from the caller's place prints 200",
            f"`ss -ltn 'sport = :{port}'` 显示 0.0.0.0:{port}，且从调用方位置 curl /health 返回 200",
        ),
        confidence=0.9,
        title=Words("The server listens on loopback only", "服务器只监听回环地址"),
    )


def other_port(case: Case, first: Hit, last: Hit) -> Found | None:
    """The server listens, and the caller dials another port."""
    inside = bound(case)
    target = target_of(last.line.text) or target_of(first.line.text)
    ready = ready_line(case)
    if target is None or inside is None or ready is None or ready.line.number > last.line.number:
        return None
    if target[1] == inside[1] or case.log.sees(PUBLISHED):
        return None
    return Found(
        cause=Words(
            f"The caller dials port {target[1]} of {target[0]}, and the server listens on port {inside[1]}.",
            f"调用方连接 {target[0]} 的端口 {target[1]}，而服务器监听端口 {inside[1]}。",
        ),
        evidence=quoted(last, inside[2]),
        fixes=[
            Fix(
                Words("call the port that the server listens on", "调用服务器实际监听的端口"),
                f"base_url=http://{target[0]}:{inside[1]}/v1",
            ),
            Fix(
                Words("or let the server listen on the port that is called", "或让服务器监听被调用的端口"),
                f"--port {target[1]}",
            ),
        ],
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://{target[0]}:{inside[1]}/health` prints 200",
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://{target[0]}:{inside[1]}/health` 输出 200",
        ),
        confidence=0.9,
        title=Words("The caller dials another port", "调用方连接了错误的端口"),
    )


def own_localhost(case: Case, first: Hit, last: Hit) -> Found | None:
    """The caller's localhost is its own container, and the server that is ready runs in another one."""
    ready = ready_line(case)
    target = target_of(last.line.text) or target_of(first.line.text) or configured_target(case)
    if target is None or target[0] not in LOOPBACK or ready is None or ready.line.number > last.line.number:
        return None
    apart = case.context.get("host.in_container") is True or re.search(r"compose|docker|kubectl", case.launch.command)
    if not apart or target[1] != port_of(case):
        return None
    host, port = target
    service = compose_service(case)
    return Found(
        cause=Words(
            f"The caller dials {host}:{port}, and inside a container that is the container itself, not the server: the server is ready on port {port} of another one.",
            f"调用方连接 {host}:{port}，而在容器内这指容器自身而不是服务器：服务器已在另一个容器的端口 {port} 就绪。",
        ),
        evidence=quoted(last, ready)
        + [
            case.context.quote(f"env.{variable}")
            for variable, value in case.context.members("env").items()
            if f"{host}:{port}" in str(value)
        ][:1],
        fixes=[
            Fix(
                Words("call the server by its service name on the common network", "在共同网络上用服务名调用服务器"),
                f"base_url=http://{service}:{port}/v1",
            ),
            Fix(
                Words("or by the host's address, if the port is published", "若端口已映射，则用宿主机地址"),
                f"base_url=http://host.docker.internal:{port}/v1",
            ),
        ],
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://{service}:{port}/health` prints 200 inside the caller's container",
            f"在调用方容器内 `curl -s -o /dev/null -w '%{{http_code}}' http://{service}:{port}/health` 输出 200",
        ),
        confidence=0.88,
        title=Words("localhost is the caller's own container", "localhost 指调用方自己的容器"),
    )


def compose_service(case: Case) -> str:
    """The compose service of the server, from its container's name (`vllm-1`)."""
    hit = case.startup.hit
    found = re.fullmatch(r"([a-z][\w\-]*?)[-_]\d+", hit.line.process) if hit else None
    return found[1] if found else "vllm"
