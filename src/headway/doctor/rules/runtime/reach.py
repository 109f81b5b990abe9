"""The router reaches nobody: an attached runtime (R19), the backends of a model (R28)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.quoted import probes_about, said
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import deployment, documents, inside
from headway.doctor.rules.runtime.statement import READY
from headway.doctor.rules.runtime.unknown import fields_of
from headway.doctor.words import Words

PROBE: Final = sight("runtime probe failed", pattern=r"^runtime probe failed", series=True)
ANSWERED: Final = sight("runtime ready", "runtime is ready", "runtime probe succeeded", "runtime probe ok", "attached runtime ready")
UNREACHED: Final = sight("model runtime at ", pattern=r"model runtime at (?P<address>\S+) cannot be reached: (?P<why>.*)")
LISTENS: Final = sight(
    "LISTEN",
    "listening on http",
    pattern=r"LISTEN\s+\d+\s+\d+\s+(?P<address>\[?[\d.:*a-f]+\]?):(?P<port>\d+)\s|listening on https?://(?P<host>[\w.\[\]:]+?):(?P<own>\d+)",
)
NO_UPSTREAM: Final = sight(
    "no usable upstream",
    "no healthy upstream",
    "no available upstream",
    "no usable backend",
    "no healthy backend",
    "has no backend that takes requests",
    "upstream list is empty",
    "no upstream",
    "no endpoints available",
    "no reachable",
    "no backend",
    "no_healthy_upstream",
    "no_upstream",
    "no_usable",
    "backends are ",
    "backends healthy",
    "none of the ",
    "none of its ",
    "upstreams are ",
    pattern=r"no (?:usable |healthy |available |reachable )(?:upstream|backend|endpoint)s?\b|no upstreams?\b|no (?:backend|endpoint)s? (?:is |are )?(?:available|usable|healthy|reachable|left|for (?:the )?(?:selected )?model)"
    r"|no_(?:(?:healthy|usable|available)_)?(?:upstream|backend)|(?:all|every|none) (?:of )?(?:the |its )?(?:\d+ )?(?:backend|upstream|endpoint)s? (?:is|are) (?:down|unhealthy|unavailable|unreachable|ejected|healthy|usable)|\b0 of \d+ backends healthy|has no backend that takes requests|upstream list is empty|no endpoints available",
)
BACKEND: Final = sight(
    "backend",
    "upstream",
    pattern=r"^(?>.*?(?:backend|upstream)\b).*?(?:cannot be reached|not well|unhealthy|healthy=False|healthy=false|connection refused|Connection refused|connect failed|answered with status 5\d\d|no such host|timed? ?out|ejected)",
)
SICK: Final = sight("further failures are only counted", pattern=r"backend (?P<name>\S+) .*; further failures are only counted")
WELL: Final = sight("answers again", pattern=r"backend (?P<name>\S+) answers again")
_REFUSED: Final = re.compile(
    r"refused|no such host|[Nn]ame or service|no route|[Uu]nreachable|timed? ?out|i/o timeout|deadline|reset by peer|cannot connect|connect:", re.IGNORECASE
)
_NAME: Final = re.compile(r"no such host|[Nn]ame or service|resolution")
_ADDRESS: Final = re.compile(r"(?:https?://[^\s,]{1,200}|[\w.\-]{1,120}:\d{2,5})")
_URL: Final = re.compile(r"https?://[\w.\-]{1,120}:\d{2,5}|\b\d{1,3}(?:\.\d{1,3}){3}:\d{2,5}\b")
_TIMEOUT: Final = re.compile(r"timed? ?out|i/o timeout|deadline", re.IGNORECASE)


def attached_runtime_is_not_reached(case: Case) -> Found | None:
    probe = next((hit for hit in reversed(case.log.hits(PROBE)) if _REFUSED.search(str(fields_of(hit).get("error", hit.line.text)))), None)
    ours = case.log.last(UNREACHED)
    hit = probe or ours
    if hit is None:
        return None
    ready = [each for each in case.log.hits(READY) if each.line.number > hit.line.number]
    fields = fields_of(hit) if probe else {}
    name = str(fields.get("deployment", ""))
    place = deployment(case, name)
    if any(each.line.number > hit.line.number and fields_of(each).get("deployment", name) == name for each in case.log.hits(ANSWERED)):
        return None
    if ready and not place.endpoint and not fields.get("endpoint"):
        return None
    endpoint = str(fields.get("endpoint", "")) or place.endpoint or (ours["address"] if ours else "")
    error = str(fields.get("error", "")) or (ours["why"] if ours else "")
    if not endpoint or (place.managed and not fields.get("endpoint")):
        return None
    parts = urlsplit(endpoint if "//" in endpoint else f"http://{endpoint}")
    host, port = parts.hostname or "", parts.port or 8100
    listening = _listener(case, port)
    in_container = case.context.get("host.in_container") is True
    quotes = [hit.quote(), *([listening[1]] if listening else [])]
    who = name or "the attached runtime"
    listens = listening[0] if listening else ""
    if _is_loopback(host) and (in_container or listens):
        return _container(case, who, name, endpoint, host, port, error, quotes)
    if _NAME.search(error):
        return _found(
            case,
            Words(
                f"The name {host} in the endpoint of {who} ({endpoint}) does not resolve where the router runs: `{error[:120]}`.",
                f"{who} 的 endpoint（{endpoint}）中的名称 {host} 在路由器所在处无法解析：`{error[:120]}`。",
            ),
            quotes,
            [
                Fix(
                    Words("use a name of this network (Service, container name) or the address of the host", "使用该网络内的名称（Service、容器名）或主机地址"),
                    f"getent hosts {host}",
                )
            ],
            endpoint,
            0.85,
        )
    if listens and _is_loopback(listens):
        cause = Words(
            f"The router asks {endpoint} for {who} and is refused ({error[:80]}): the runtime there listens on {listens}:{port} only (its default), which nothing but its own host reaches. It is running and healthy; waiting longer changes nothing.",
            f"路由器向 {endpoint} 访问 {who} 被拒绝（{error[:80]}）：那里的运行时只监听 {listens}:{port}（默认值，loopback），除本机外无法访问。它本身运行正常，再等也没有用。",
        )
        confidence = 0.95
    elif listens:
        cause = Words(
            f"The router asks {endpoint} for {who} and fails ({error[:80]}), although the runtime listens on {listens}:{port}: the way between them is closed, or the endpoint names another host.",
            f"路由器访问 {who} 的 {endpoint} 失败（{error[:80]}），而运行时监听在 {listens}:{port}：两者之间不通，或 endpoint 指向了别的主机。",
        )
        confidence = 0.6
    elif _TIMEOUT.search(error):
        cause = Words(
            f"{endpoint} of {who} does not answer at all ({error[:80]}): packets are dropped on the way, or the address belongs to no host.",
            f"{who} 的 {endpoint} 完全没有应答（{error[:80]}）：途中丢包，或该地址没有主机。",
        )
        confidence = 0.7
    else:
        cause = Words(
            f"{endpoint} of {who} refuses connections ({error[:80]}): a runtime listens on 127.0.0.1 (loopback) unless told otherwise, or it is not running there.",
            f"{who} 的 {endpoint} 拒绝连接（{error[:80]}）：运行时默认只监听 127.0.0.1（loopback），或者根本没有在那里运行。",
        )
        confidence = 0.8
    serve = f"vllm-srun serve {place.artifact} " if place.artifact else ""
    fixes = [
        Fix(
            Words(
                f"on {host}: let the runtime listen on all interfaces, and admit only the router to port {port}",
                f"在 {host} 上：让运行时监听所有网卡，并限制只有路由器可访问端口 {port}",
            ),
            f"{serve}--host 0.0.0.0 --port {port}",
        ),
        Fix(Words("or only on the address that the router asks", "或只监听路由器访问的地址"), f"{serve}--host {host} --port {port}")
        if re.fullmatch(r"[\d.]+", host) and not _is_loopback(host)
        else Fix(Words("see where it listens", "查看其监听地址"), f"ss -ltnp | grep {port}"),
        Fix(Words("on the same host: a Unix socket needs no port", "在同一主机上：Unix socket 不需要端口"), f"{serve}--uds /run/vllm-srun/srun.sock"),
    ]
    if _TIMEOUT.search(error) and not listens:
        see = Fix(
            Words(
                f"see from the router's place whether {host} is the right address of {who}, and whether port {port} is open to it; correct the endpoint",
                f"在路由器所在处确认 {host} 是否为 {who} 的正确地址、端口 {port} 是否对其开放；更正 endpoint",
            ),
            f"curl -sv -m 5 {endpoint}/health",
        )
        fixes = [see, fixes[2]]
    return _found(case, cause, quotes, fixes, endpoint, confidence)


def _container(case: Case, who: str, name: str, endpoint: str, host: str, port: int, error: str, quotes: list[Quote]) -> Found:
    known = case.context.get("host.in_container") is True
    quotes = [*quotes, case.context.quote("host.in_container", "in_container: true")] if known else quotes
    owner = name or "embed"
    return _found(
        case,
        Words(
            f"The router runs in a container, and there {host} of {endpoint} is the container itself: nothing listens on its port {port} ({error[:80]}). The runtime of {who} on the host is not asked at all.",
            f"路由器运行在容器内，{endpoint} 中的 {host} 指容器自身（loopback）：其端口 {port} 无人监听（{error[:80]}）。主机上的 {who} 运行时根本没有被访问到。",
        ),
        quotes,
        [
            Fix(
                Words(
                    "name the host (or the network name or Service of the runtime) in the endpoint", "在 endpoint 中填写主机地址（或运行时的网络名、Service）"
                ),
                f"global.model_catalog.deployments.{owner}.endpoint: http://host.docker.internal:{port}",
            ),
            Fix(
                Words(
                    "and let the runtime listen beyond its loopback, open to the container network only", "并让运行时监听 loopback 之外的地址，只对容器网络开放"
                ),
                f"vllm-srun serve --host 0.0.0.0 --port {port}",
            ),
            Fix(
                Words("on Linux the name has to be given to the container", "在 Linux 上需把该名称加入容器"),
                "docker run --add-host=host.docker.internal:host-gateway",
            ),
        ],
        f"http://host.docker.internal:{port}",
        0.9 if known else 0.8,
    )


def _found(case: Case, cause: Words, quotes: list[Quote], fixes: list[Fix], endpoint: str, confidence: float) -> Found:
    return Found(
        cause=cause,
        evidence=[*quotes, *probes_about(case.context, endpoint, urlsplit(endpoint).netloc)],
        fixes=fixes,
        verify=Words(
            f"`curl -s {endpoint}/health` run where the router runs (in its container) answers",
            f"在路由器所在处（其容器内）执行 `curl -s {endpoint}/health` 有应答",
        ),
        confidence=confidence,
        explains=("R13", "R30", "R12", "N1", "N19", "N20"),
    )


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in ("localhost", "::1", "[::1]")


def _listener(case: Case, port: int) -> tuple[str, Quote] | None:
    """Where something listens on this port: from `ss` in the log, or from the context."""
    for hit in case.log.hits(LISTENS):
        if hit["port"] == str(port):
            return hit["address"].strip("[]"), hit.quote()
        if hit["own"] == str(port):
            return hit["host"].strip("[]"), hit.quote()
    for index, each in enumerate(case.context.items("host.listeners")):
        text = " ".join(map(str, each.values())) if isinstance(each, dict) else str(each)
        if str(each["port"]) == str(port) if isinstance(each, dict) and "port" in each else re.search(rf":{port}\b", text):
            address = re.search(r"(127\.[\d.]+|0\.0\.0\.0|::1|\*|::|\d{1,3}(?:\.\d{1,3}){3})", text)
            return (address[1] if address else ""), case.context.quote(f"host.listeners.{index}", text)
    return None


def no_backend_can_be_used(case: Case) -> Found | None:
    hits = case.log.hits(NO_UPSTREAM) or _never_answered(case)
    if not hits:
        return None
    hit = hits[0]
    fields = fields_of(hit)
    model = str(fields.get("model") or fields.get("selected_model") or "") or (m[1] if (m := re.search(r"model [\"']?([\w./:\-]+)", hit.line.text)) else "")
    sick_name = hit["name"] if "name" in hit.match.re.groupindex else ""
    model = model or sick_name.rpartition("/")[0]
    status = 502 if sick_name else 503
    endpoints = list({each.partition("//")[2] or each: each for each in reversed(list(_endpoints(case, model, hit)))}.values())[::-1]
    said_here = {each.line.number for each in hits}
    sick = next((each for each in case.log.hits(BACKEND) if each.line.number not in said_here), None)
    listed = ", ".join(endpoints[:4])
    known = Words(
        f" It has {len(endpoints)}: {listed}." if endpoints else " No endpoint of it is known here.",
        f"它有 {len(endpoints)} 个后端：{listed}。" if endpoints else "此处看不到它的任何 endpoint。",
    )
    told = Words("", "")
    if sick is not None:
        text = said(sick, 140)
        told = Words(f" Seen before: `{text}`.", f"此前可见：`{text}`。")
    first = endpoints[0] if endpoints else ""
    base = first if "//" in first else f"http://{first}"
    local = bool(first) and _is_loopback(urlsplit(base).hostname or "") and case.context.get("host.in_container") is True
    fixes = []
    if local:
        port = urlsplit(base).port or 8000
        fixes.append(
            Fix(
                Words("inside the router's container localhost is the container: name the host", "在路由器容器内 localhost 指容器自身：改为主机地址"),
                f"endpoint: host.docker.internal:{port}",
            )
        )
    fixes.append(
        Fix(
            Words(
                f"start the backend{f' at {first}' if first else ''}, or correct its endpoint in providers.models[].backend_refs",
                f"启动后端{f'（{first}）' if first else ''}，或更正 providers.models[].backend_refs 中的 endpoint",
            ),
            f"curl -s {base.rstrip('/').removesuffix('/v1')}/v1/models" if first else "vllm-sr config router",
        )
    )
    fixes.append(Fix(Words("see which backends the router takes for well", "查看路由器认为可用的后端"), "curl -s localhost:9190/metrics | grep vsr_upstream"))
    return Found(
        cause=Words(
            f"The router chose {model or 'a model'} and had no backend to send the request to{f' ({len(hits)} times)' if len(hits) > 1 else ''}, so it answered {status}.{known.en}{told.en} Routing itself works.",
            f"路由器选中了 {model or '某个模型'}，但没有可用的后端接收请求{f'（{len(hits)} 次）' if len(hits) > 1 else ''}，因此返回 {status}。{known.zh}{told.zh}路由本身正常。",
        ),
        evidence=[hit.quote(), *([sick.quote()] if sick else []), *probes_about(case.context, *endpoints[:2])],
        fixes=fixes,
        verify=Words(
            f"`curl -s {base.rstrip('/').removesuffix('/v1')}/v1/models` from the router's place lists the model, and its upstream list is not empty"
            if first
            else "the upstream list of the model is not empty, and a request to it answers 200",
            f"在路由器所在处执行 `curl -s {base.rstrip('/').removesuffix('/v1')}/v1/models` 能列出该模型，且其 upstream 列表非空"
            if first
            else "该模型的 upstream 列表非空，且请求返回 200",
        ),
        confidence=0.9 if case.log.sees(NO_UPSTREAM) else 0.7,
        explains=("N1", "N19"),
    )


def _never_answered(case: Case) -> tuple[Hit, ...]:
    """Headway says once that a backend fails and once that it answers again."""
    well = [hit["name"] for hit in case.log.hits(WELL)]
    return tuple(hit for hit in case.log.hits(SICK) if hit["name"] not in well)


def _endpoints(case: Case, model: str, hit: Hit) -> Iterator[str]:
    fields = fields_of(hit)
    for value in fields.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and _ADDRESS.fullmatch(text):
                yield text
    yield from _URL.findall(hit.line.text)
    given = fields.get("backends") or fields.get("endpoints")
    for each in given if isinstance(given, list) else []:
        if isinstance(each, dict) and (address := each.get("endpoint") or each.get("address")):
            yield str(address)
    for each in case.log.hits(BACKEND):
        told = fields_of(each)
        if model and told.get("model", model) != model:
            continue
        for name in ("endpoint", "address", "base_url", "url", "backend", "upstream"):
            if isinstance(value := told.get(name), str) and ":" in value:
                yield value
    for _, tree in documents(case):
        for entry in inside(tree, "providers", "models") or []:
            if isinstance(entry, dict) and (not model or entry.get("name") == model):
                yield from _addresses(entry)


def _addresses(entry: dict[str, Any]) -> Iterator[str]:
    for ref in entry.get("backend_refs") or entry.get("endpoints") or []:
        if isinstance(ref, dict):
            value = ref.get("base_url") or ref.get("endpoint") or ref.get("address")
            if isinstance(value, str):
                yield value


RULES: Final = (
    Rule(
        id="R19",
        title=Words("An attached runtime cannot be reached", "无法访问外挂的运行时"),
        symptoms=Words("refused or failing probes of an `endpoint`", "对 `endpoint` 的探测被拒绝或失败"),
        why=Words("it listens on 127.0.0.1, or the caller's localhost is its own container", "它只监听 127.0.0.1，或调用方的 localhost 是其自身容器"),
        needs=Words("the listener's address, the endpoint, where the caller runs", "监听地址、endpoint、调用方位置"),
        remedy=Words(
            "--host 0.0.0.0 or a Unix socket; from a container a host address, network name or Service",
            "--host 0.0.0.0 或 Unix socket；在容器内使用主机地址、网络名或 Service",
        ),
        check=Words("curl of /health from the router's place", "在路由器所在处 curl /health"),
        judge=attached_runtime_is_not_reached,
        sees=(PROBE, ANSWERED, UNREACHED, LISTENS, READY, *DEPLOYMENTS),
    ),
    Rule(
        id="R28",
        title=Words("No backend of the chosen model can be used", "所选模型没有可用的后端"),
        symptoms=Words("503, no usable upstream", "503，没有可用的 upstream"),
        why=Words("none of its backends answers", "其所有后端都不可用"),
        needs=Words("endpoints, their health from the router's place", "endpoint 及其从路由器处的健康状态"),
        remedy=Words("correct the endpoint, start the backend", "更正 endpoint，启动后端"),
        check=Words("the upstream list is not empty", "upstream 列表非空"),
        judge=no_backend_can_be_used,
        sees=(NO_UPSTREAM, BACKEND, SICK, WELL),
    ),
)
