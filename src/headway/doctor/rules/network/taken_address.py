"""N12, N13 and N18: the server cannot bind: an address that does not exist here, a port that is a URL, a port that is
taken."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.network.published_ports import published_as, published_in
from headway.doctor.rules.network.server_address import bound, free_port_after, listener_on, port_of, ready_line
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

IN_USE: Final = sight(
    "ddress already in use",
    "port is already allocated",
    "couldn't bind HTTP server socket",
    "[port_in_use]",
    "Only one usage of each socket address",
    "EADDRINUSE",
    "is in use by process",
    pattern=r"bind on address \('(?P<host>[^']*)', (?P<port>\d+)|Bind for (?P<bind>[\d.:\[\]a-f]*):(?P<mapped>\d+) failed|listen tcp\d? (?P<tcp>\S*):(?P<listen>\d+): bind"
    r"|couldn't bind HTTP server socket, hostname: (?P<name>[^,]+), port: (?P<llama>\d+)|Port (?P<headway>\d+) on \S+ is in use(?: by process (?P<pid>\d+) \((?P<command>[^)]*)\))?"
    r"|EADDRINUSE.*?:(?P<node>\d{2,5})\b|\[Errno (?:98|48|10048)\] [Aa]ddress already in use|ddress already in use",
)
# other sockets than that of the HTTP server: rendezvous, ZMQ, the C++ store
_INTERNAL: Final = re.compile(
    r"server socket has failed|c10d|TCPStore|socket\.cpp|zmq|ZMQ|tcp://|ipc://|master_port|torchrun|rendezvous|nccl|NCCL|gloo|useIpv6"
)
_WORKERS: Final = re.compile(r"^(?:Worker|EngineCore|RayWorker|rank|DP|TP)")


def port_is_taken(case: Case) -> Found | None:
    """The owner of the port, when the context knows it, decides between stopping it and another port."""
    hit = next(
        (
            hit
            for hit in case.log.hits(IN_USE)
            if not _INTERNAL.search(hit.line.text) and not _WORKERS.match(hit.line.process)
        ),
        None,
    )
    if hit is None:
        return None
    stated = next((hit[group] for group in ("port", "mapped", "listen", "llama", "headway", "node") if hit[group]), "")
    port = int(stated) if stated else port_of(case)
    owner = listener_on(case, port)
    pid = owner.pid if owner and owner.pid is not None else int(hit["pid"]) if hit["pid"] else None
    command = owner.command if owner else hit["command"]
    other = free_port_after(case, port)
    ours = bool(re.search(r"vllm|headway|llama-server|sglang|VLLM::", command))
    by = (
        Words(
            f" by process {pid}{f' ({command})' if command else ''}",
            f"，占用者是进程 {pid}{f'（{command}）' if command else ''}",
        )
        if pid is not None
        else Words("", "")
    )
    age = Words(
        f", running for {owner.age_s / 3600:.1f} h" if owner and owner.age_s and owner.age_s >= 3600 else "",
        f"，已运行 {owner.age_s / 3600:.1f} 小时" if owner and owner.age_s and owner.age_s >= 3600 else "",
    )
    late = ready_line(case)
    loaded = case.startup.reached("weights loaded") or (late is not None and late.line.number < hit.line.number)
    wasted = Words(
        " The model had been loaded before the port was tried." if loaded else "",
        "在尝试端口之前模型已经加载完毕。" if loaded else "",
    )
    docker = bool(hit["mapped"])
    fixes: list[Fix] = []
    who = f"ss -ltnp 'sport = :{port}'"
    if pid is not None:
        what = Words(
            "stop the leftover server that holds the port"
            if ours
            else "stop the owner of the port, if it is not needed",
            "停止占用该端口的遗留服务" if ours else "若不再需要，停止占用该端口的进程",
        )
        fixes.append(Fix(what, f"kill {pid}"))
    other_port = Fix(
        Words(
            f"or use another port, such as {other}" if fixes else f"use another port, such as {other}",
            f"{'或' if fixes else ''}使用另一个端口，例如 {other}",
        ),
        published_as(case.launch.command, other, (published_in(case.launch.command) or (port, port))[1])
        if docker
        else f"--port {other}",
    )
    if ours or pid is None:
        fixes.append(other_port)
    else:
        fixes.insert(
            0, Fix(Words(f"use another port, such as {other}", f"使用另一个端口，例如 {other}"), other_port.command)
        )
    if pid is None:
        fixes.append(
            Fix(
                Words("or find the owner of the port and stop it", "或找出占用该端口的进程并停止它"),
                "docker ps --filter publish=" + str(port) if docker else who,
            )
        )
    return Found(
        cause=Words(
            f"Port {port} is already in use{by.en}{age.en}, so the HTTP server could not listen.{wasted.en}",
            f"端口 {port} 已被占用{by.zh}{age.zh}，HTTP 服务器无法监听。{wasted.zh}",
        ),
        evidence=quoted(hit) + ([case.context.quote(owner.place)] if owner else []),
        fixes=fixes,
        verify=Words(
            f"`{who}` shows only the new server, and `curl -s http://127.0.0.1:{port}/health` answers 200",
            f"`{who}` 只显示新的服务器，且 `curl -s http://127.0.0.1:{port}/health` 返回 200",
        ),
        confidence=STATED,
        explains=("N1",),
    )


NO_SUCH_ADDRESS: Final = sight(
    "annot assign requested address",
    "an't assign requested address",
    "Name or service not known",
    "ddress family not supported",
    pattern=r"bind on address \('(?P<host>[^']*)', (?P<port>\d+).*(?:assign requested address|Name or service|ddress family not supported)|listen tcp\d? (?P<tcp>\S*):(?P<listen>\d+): bind: cannot assign",
)


def address_does_not_exist(case: Case) -> Found | None:
    """Errno 99 while binding: the address, most often ::1, is on no interface here. Nobody holds the port."""
    hit = case.log.first(NO_SUCH_ADDRESS)
    if hit is None:
        return _other_family(case)
    host = hit["host"] or hit["tcp"].strip("[]")
    port = int(hit["port"] or hit["listen"])
    addresses = [
        str(address)
        for index in range(len(case.context.items("host.interfaces")))
        for address in case.context.items(f"host.interfaces.{index}.addresses")
    ]
    v6 = ":" in host
    asked = case.launch.value("host")
    named = Words(
        f" (from --host {asked})" if asked and asked != host else "",
        f"（来自 --host {asked}）" if asked and asked != host else "",
    )
    have = Words(
        f"; its interfaces have {', '.join(addresses)}" if addresses else "",
        f"；其接口地址为 {'、'.join(addresses)}" if addresses else "",
    )
    what = Words(
        "IPv6 is off here" if v6 else "no interface has it", "这里没有启用 IPv6" if v6 else "没有任何接口拥有它"
    )
    inside = case.context.get("host.in_container") is True
    fixes = [Fix(Words("listen on the IPv4 loopback address", "监听 IPv4 回环地址"), "--host 127.0.0.1")]
    if inside or host == "::" or (not v6 and host not in ("localhost",)):
        everywhere = Fix(
            Words(
                "listen on all IPv4 addresses, if callers are outside this container or machine (then with an API key or a closed network)",
                "若调用方在容器或本机之外，监听所有 IPv4 地址（并配合 API 密钥或封闭网络）",
            ),
            "--host 0.0.0.0",
        )
        fixes = [fixes[0], everywhere] if v6 and host != "::" else [everywhere, fixes[0]]
        own = next((one for one in addresses if ":" not in one and not one.startswith("127.")), "")
        if own and not v6:
            fixes.insert(
                0, Fix(Words("listen on the address that exists here", "监听本机实际存在的地址"), f"--host {own}")
            )
    if v6 and not inside:
        fixes.append(
            Fix(
                Words("or switch IPv6 on for the loopback interface", "或为回环接口启用 IPv6"),
                "sudo sysctl -w net.ipv6.conf.lo.disable_ipv6=0",
            )
        )
    return Found(
        cause=Words(
            f"The server was to listen on {host} port {port}{named.en}, an {'IPv6 ' if v6 else ''}address that does not exist on this machine: {what.en}{have.en}. The port is not taken (that would be errno 98).",
            f"服务器要监听 {host} 端口 {port}{named.zh}，而本机不存在该{' IPv6 ' if v6 else ''}地址：{what.zh}{have.zh}。端口并未被占用（那会是 errno 98）。",
        ),
        evidence=quoted(hit) + ([case.context.quote("host.interfaces")] if addresses else []),
        fixes=fixes,
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/health` prints 200",
            f"`curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/health` 输出 200",
        ),
        confidence=STATED,
        explains=("N1", "N18"),
    )


V6_REFUSED: Final = sight(
    "ECONNREFUSED ::1",
    "[::1]",
    "Failed to connect to ::1",
    pattern=r"ECONNREFUSED ::1:(?P<port>\d+)|(?:Failed to connect to|dial tcp) \[?::1\]?(?::| port )(?P<port2>\d+).*(?:refused|Couldn't connect)",
)


def _other_family(case: Case) -> Found | None:
    """The caller's `localhost` became ::1, and the server listens on IPv4 only."""
    hit, here = case.log.first(V6_REFUSED), bound(case)
    ready = ready_line(case)
    if hit is None or here is None or ":" in here[0] or ready is None or ready.line.number > hit.line.number:
        return None
    port = here[1]
    return Found(
        cause=Words(
            f"The caller's `localhost` resolves to the IPv6 address ::1, and the server listens on {here[0]} port {port}, that is IPv4 only: one of the two addresses works, the other is refused.",
            f"调用方的 `localhost` 解析为 IPv6 地址 ::1，而服务器只监听 IPv4 的 {here[0]} 端口 {port}：两个地址中一个可用，另一个被拒绝。",
        ),
        evidence=quoted(hit, here[2]),
        fixes=[
            Fix(
                Words("name the IPv4 address in the caller's base URL", "在调用方 base URL 中写 IPv4 地址"),
                f"base_url=http://127.0.0.1:{port}/v1",
            ),
            Fix(Words("or let the server listen on both families", "或让服务器同时监听两种地址族"), "--host ::"),
        ],
        verify=Words(
            f"`curl -4 -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/health` prints 200",
            f"`curl -4 -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/health` 输出 200",
        ),
        confidence=0.92,
        title=Words(
            "localhost is IPv6 for the caller and IPv4 for the server", "localhost 对调用方是 IPv6、对服务器是 IPv4"
        ),
        explains=("N1",),
    )


PORT_IS_URL: Final = sight("appears to be a URI", pattern=r"VLLM_PORT '?(?P<value>[^'\s]+)'? appears to be a URI")
PORT_NO_NUMBER: Final = sight(
    "invalid literal for int() with base 10: 'tcp://", pattern=r"base 10: '(?P<value>tcp://[^']+)'"
)


def port_variable_is_a_url(case: Case) -> Found | None:
    """Kubernetes gives every container NAME_PORT=tcp://... for each service NAME of the namespace."""
    hit = case.log.first(PORT_IS_URL, PORT_NO_NUMBER)
    value = case.context.text("env.VLLM_PORT")
    injected = value.startswith("tcp://")
    if hit is None and not (injected and not case.startup.ready and case.exceptions.first):
        return None
    value = value if injected else hit["value"] if hit else value
    return Found(
        cause=Words(
            f"VLLM_PORT is {value}: Kubernetes injects such a variable for a service that is called `vllm`, and the engine reads VLLM_PORT as its own internal port number. Another --port changes nothing.",
            f"VLLM_PORT 的值是 {value}：Kubernetes 会为名为 `vllm` 的 Service 注入这样的变量，而引擎把 VLLM_PORT 当作自己的内部端口号。修改 --port 没有作用。",
        ),
        evidence=quoted(hit) + ([case.context.quote("env.VLLM_PORT")] if injected else []),
        fixes=[
            Fix(
                Words("switch the injection off in the pod's spec", "在 Pod 的 spec 中关闭注入"),
                "enableServiceLinks: false",
            ),
            Fix(
                Words("or rename the Service to anything but `vllm`", "或把 Service 改名为 `vllm` 以外的名字"),
                "kubectl get service vllm -o yaml | sed 's/^  name: vllm$/  name: vllm-server/' | kubectl apply -f - && kubectl delete service vllm",
            ),
            Fix(
                Words("or unset the variable in the container's start command", "或在容器启动命令中取消该变量"),
                "unset VLLM_PORT",
            ),
        ],
        verify=Words(
            "`kubectl exec POD -- printenv VLLM_PORT` prints nothing and the start goes on".replace("POD", _pod(case)),
            "`kubectl exec POD -- printenv VLLM_PORT` 没有输出，且启动继续".replace("POD", _pod(case)),
        ),
        confidence=STATED if hit else 0.8,
        explains=("N1",),
    )


POD: Final = sight(
    "Back-off restarting failed container",
    "pod/",
    pattern=r"(?:pod[/ ])(?P<name>[a-z0-9][a-z0-9\-.]{2,80}?)(?::|\s|\])",
)


def _pod(case: Case) -> str:
    hit = case.log.first(POD)
    return hit["name"] if hit else "deploy/vllm"


def bind_failed(case: Case) -> Hit | None:
    """A line of the two rules above, for rules that must not read the same failure as their own."""
    return case.log.first(IN_USE, NO_SUCH_ADDRESS)


RULES: Final = (
    Rule(
        id="N12",
        title=Words("The listen address does not exist here", "监听地址在本机不存在"),
        symptoms=Words(
            "`[Errno 99] ... cannot assign requested address` for `::1`; `localhost` works one way only",
            "`[Errno 99] ... cannot assign requested address`（`::1`）；`localhost` 只有一侧可用",
        ),
        why=Words(
            "`localhost` resolves to an IPv6 address and IPv6 is off, or the address belongs to another machine",
            "`localhost` 解析为 IPv6 地址而 IPv6 未启用，或该地址属于另一台机器",
        ),
        needs=Words("the addresses of the interfaces", "各接口的地址"),
        remedy=Words("--host 127.0.0.1, or the address that exists", "--host 127.0.0.1，或存在的地址"),
        check=Words("curl on that address", "对该地址执行 curl"),
        judge=address_does_not_exist,
        sees=(NO_SUCH_ADDRESS, V6_REFUSED),
    ),
    Rule(
        id="N13",
        title=Words("VLLM_PORT is a URL", "VLLM_PORT 是一个 URL"),
        symptoms=Words("`VLLM_PORT 'tcp://...' appears to be a URI`", "`VLLM_PORT 'tcp://...' appears to be a URI`"),
        why=Words(
            "a Kubernetes service called vllm injects the variable", "名为 vllm 的 Kubernetes Service 注入了该变量"
        ),
        needs=Words("the variable", "该环境变量"),
        remedy=Words(
            "rename the service or enableServiceLinks: false", "给 Service 改名，或 enableServiceLinks: false"
        ),
        check=Words("printenv VLLM_PORT in the pod", "在 Pod 中执行 printenv VLLM_PORT"),
        judge=port_variable_is_a_url,
        sees=(PORT_IS_URL, PORT_NO_NUMBER, POD),
    ),
    Rule(
        id="N18",
        proof="live",
        title=Words("The port is taken", "端口被占用"),
        symptoms=Words(
            "`[Errno 98] ... address already in use`, often after minutes of loading",
            "`[Errno 98] ... address already in use`，常在加载数分钟之后",
        ),
        why=Words(
            "another server, a leftover one, or any other program listens on the port",
            "另一个服务、遗留进程或其他程序正在监听该端口",
        ),
        needs=Words("pid, command and age of the owner", "占用者的 pid、命令与运行时间"),
        remedy=Words("stop the owner or use another port", "停止占用者或换一个端口"),
        check=Words("`ss -ltnp` shows only the new server", "`ss -ltnp` 只显示新的服务器"),
        judge=port_is_taken,
        sees=(IN_USE,),
    ),
)
