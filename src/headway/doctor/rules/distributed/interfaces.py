"""Ranks that announce an address nobody else can reach: the wrong interface (D5), a name that means loopback (D14)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import node_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_LOCAL_ONLY: Final = r"(?:lo|docker\d*|br-[0-9a-f]+|virbr\d*|veth\w*|wl\w+|cni\d*|flannel[\w.]*|cali\w+|podman\d*|lxcbr\d*|vmnet\d*|utun\d*)"

BOOTSTRAP: Final = sight(
    "NCCL INFO Bootstrap",
    "NCCL INFO NET/Socket",
    pattern=rf"(?:Bootstrap|NET/Socket) ?: Using (?:\[\d+\] ?)?(?P<name>{_LOCAL_ONLY}):(?P<address>[\d.]+|\[?[0-9a-f:]+\]?)",
)
ANY_BOOTSTRAP: Final = sight("NCCL INFO Bootstrap", pattern=r"Bootstrap ?: Using (?:\[\d+\] ?)?(?P<name>[\w.\-]+):(?P<address>[\d.]+)")
FALLBACK: Final = sight("Using the loopback address as fallback")
MESH: Final = sight("connectFullMesh failed")
REMOTE: Final = sight("remote=[", pattern=r"(?:SO_ERROR|error).*remote=\[(?P<address>127\.[\d.]+|::1|::ffff:127\.[\d.]+)\](?::(?P<port>\d+))?")
DIALS_LOOPBACK: Final = sight("trying to connect to (", pattern=r"while trying to connect to \((?P<address>127\.[\d.]+|localhost|::1), ?(?P<port>\d+)\)")
NO_PEER: Final = sight(
    "NCCL WARN",
    "unhandled system error",
    "ncclSystemError",
    "ncclRemoteError",
    "unhandled remote",
    "SO_ERROR",
    "No route to host",
    pattern=r"(?:Connection (?:refused|timed out|closed)|No route to host|socketStartConnect|Connect to [\d.]+<\d+> failed|unhandled system error|ncclSystemError|ncclRemoteError"
    r"|Network is unreachable)",
)
WAITED: Final = sight("Watchdog caught collective operation timeout", "The client socket has timed out")
RESOLVES: Final = sight("127.0.1.1", "resolves to 127.", "resolved to 127.", pattern=r"(?P<address>127\.0\.1\.1)|resolve[sd] to (?P<other>127\.[\d.]+)")
UNRESOLVED: Final = sight(
    "Unable to resolve hostname", "gethostbyname", "Name or service not known", pattern=r"Unable to resolve hostname to a \(local\) address"
)
RAY_ADDRESS: Final = sight("Ray cluster at address", pattern=r"Ray cluster at address: (?P<address>\d[\d.]+)")
SKEW: Final = sight("clock skew", "Clock skew", "clocks are not synchronized", pattern=r"[Cc]lock skew|clocks are not synchronized")
_CONNECTING: Final = re.compile(r"[Cc]onnect|[Rr]efused|timed out|[Uu]nreachable|No route|closed by")
_HOSTS: Final = re.compile(r"(?m)^\s*(127\.0\.1\.1)\s+(\S+)")


def wrong_interface(case: Case) -> Found | None:
    """A local interface alone is fine on one host; it is the cause when connecting then fails."""
    if case.startup.ready:
        return None
    mesh, remote, fallback = case.log.first(MESH), case.log.first(REMOTE), case.log.first(FALLBACK)
    dialled = remote or case.log.first(DIALS_LOOPBACK)
    local = case.log.first(BOOTSTRAP)
    failed = case.log.first(NO_PEER, MESH) or (case.log.first(WAITED) if _other_nodes(case) else None)
    if dialled is not None and (mesh or fallback or dialled is not remote):
        return _loopback(case, [hit for hit in (fallback, mesh, dialled) if hit is not None], STATED if remote else 0.9)
    if fallback is not None and mesh is not None:
        return _loopback(case, [fallback, mesh], 0.9)
    if local is not None and failed is not None and failed.line.number >= local.line.number:
        return _local_interface(case, local, failed, 0.9 if _CONNECTING.search(failed.line.text) or _other_nodes(case) else 0.5)
    return None


def _loopback(case: Case, hits: list[Hit], confidence: float) -> Found:
    node = next((found for hit in hits if (found := node_of(hit.line))), "")
    at = Words(f" on {node}" if node else "", f"（节点 {node}）" if node else "")
    target = next((f"{hit['address']}:{hit['port']}" for hit in hits if "port" in hit.match.re.groupindex and hit["port"]), "127.0.0.1")
    first = hits[0]
    because = (
        Words(
            "its host name resolves to no address of its own, so it fell back to the loopback address", "主机名无法解析到本机的可路由地址，于是退回到回环地址"
        )
        if "fallback" in first.line.text
        else Words("it took the loopback address as its own", "它把回环地址当作自己的地址")
    )
    return Found(
        cause=Words(
            f"A rank{at.en} announced 127.0.0.1 to the others: {because.en}. Every other rank then dials itself ({target}) and is refused. The exceptions of"
            " actors and engine that follow are consequences.",
            f"某个 rank{at.zh}向其他 rank 通告了 127.0.0.1：{because.zh}。其他 rank 因此连接到自己（{target}）并被拒绝。随后 actor 与引擎的异常都是后果。",
        ),
        evidence=[hit.quote() for hit in hits],
        fixes=_name_the_interface(case, node),
        verify=Words(
            "with NCCL_DEBUG=INFO the line `Bootstrap: Using` and the Gloo start show the address of the shared network, not 127.0.0.1",
            "设置 NCCL_DEBUG=INFO，`Bootstrap: Using` 一行与 Gloo 启动显示共用网络的地址，而不是 127.0.0.1",
        ),
        confidence=confidence,
        at=hits[0].line.number,
        explains=("D9", "D12", "D17", "D4", "D11", "N1"),
    )


def _local_interface(case: Case, local: Hit, failed: Hit, confidence: float) -> Found:
    name, address = local["name"], local["address"]
    routable = next((hit for hit in case.log.hits(ANY_BOOTSTRAP) if not re.fullmatch(_LOCAL_ONLY, hit["name"])), None)
    kind = {"lo": Words("loopback", "回环接口"), "do": Words("Docker's bridge", "Docker 网桥"), "wl": Words("wireless", "无线网卡")}.get(
        name[:2], Words("local to this host", "仅限本机的接口")
    )
    return Found(
        cause=Words(
            f"NCCL chose the interface {name} ({address}, {kind.en}) for its connections; other nodes cannot reach that address, and connecting failed."
            " The interface has to be named for NCCL and for Gloo, in the environment of the workers.",
            f"NCCL 选用了接口 {name}（{address}，{kind.zh}）建立连接；其他节点无法访问该地址，因此连接失败。必须在 worker 的环境中同时为 NCCL 与 Gloo 指定接口。",
        ),
        evidence=[local.quote(), failed.quote(), *([routable.quote()] if routable else [])],
        fixes=_name_the_interface(case, node_of(local.line), routable["name"] if routable else "", exclude=name),
        verify=Words(
            f"with NCCL_DEBUG=INFO `Bootstrap: Using` names the interface of the shared network, not {name}:{address}",
            f"设置 NCCL_DEBUG=INFO，`Bootstrap: Using` 显示共用网络的接口，而不是 {name}:{address}",
        ),
        confidence=confidence,
        explains=("D11", "D17", "D9", "D4", "N1", "N20"),
    )


def _other_nodes(case: Case) -> bool:
    """Whether ranks of other hosts take part: on one host such an interface works."""
    hosts = {hit.line.process.partition(":")[0] or node_of(hit.line) for hit in case.log.hits(BOOTSTRAP, ANY_BOOTSTRAP)}
    return len(hosts) > 1 or bool(case.log.first(RAY_ADDRESS)) or len(case.context.items("host.ray.nodes")) > 1


def _name_the_interface(case: Case, node: str, known: str = "", exclude: str = "") -> list[Fix]:
    interface = known or _from_context(case, exclude)
    ray = case.log.first(RAY_ADDRESS)
    target = (
        ray["address"]
        if ray
        else next((value for name in ("MASTER_ADDR", "VLLM_HOST_IP") if (value := case.context.text(f"env.{name}")) and not value.startswith("127.")), "")
    )
    found = (
        f"$(ip -o route get {target} | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')"
        if target
        else "$(ip -o route show default | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')"
    )
    name = interface or found
    own = node or "$(hostname -I | cut -d' ' -f1)"
    set_all = Fix(
        Words(
            "name the routable interface for both libraries, on every node and in the environment of the workers (before `ray start`, in the container, in the unit), not only in the shell that starts the server",
            "在每个节点、且在 worker 的环境中（`ray start` 之前、容器内、服务单元内）为两个库指定可路由的网卡，仅在启动服务的 shell 中设置是不够的",
        ),
        f"export GLOO_SOCKET_IFNAME={name} NCCL_SOCKET_IFNAME={'$GLOO_SOCKET_IFNAME' if not interface else name}",
    )
    return [
        set_all,
        Fix(Words("and give each node its own address in that network", "并为每个节点指定其在该网络中的地址"), f"export VLLM_HOST_IP={own}"),
        Fix(
            Words("or repair the name: the host name must resolve to the routable address", "或修复名称解析：主机名应解析到可路由地址"),
            f'echo "{own} $(hostname)" | sudo tee -a /etc/hosts',
        ),
    ]


def _from_context(case: Case, exclude: str) -> str:
    """The first interface of the host with a routable address; `interfaces[]` are mappings or `eth0 10.0.0.5/24` texts."""
    for each in case.context.items("host.interfaces"):
        text = " ".join(map(str, each.values())) if isinstance(each, dict) else str(each)
        name = str(each.get("name", "")) if isinstance(each, dict) else text.split(" ")[0].strip(":")
        address = re.search(r"(?<![\d.])(?!127\.|169\.254\.)(\d{1,3}(?:\.\d{1,3}){3})", text)
        if name and address and name != exclude and not re.fullmatch(_LOCAL_ONLY, name):
            return name
    return ""


def name_is_loopback(case: Case) -> Found | None:
    """127.0.1.1 is what Debian writes for the own name."""
    if case.startup.ready:
        return None
    skew = case.log.first(SKEW)
    hit = case.log.first(RESOLVES)
    failed = case.log.first(MESH, REMOTE, NO_PEER, DIALS_LOOPBACK)
    hosts = _hosts(case)
    if hit is None and hosts is None:
        return _clock(skew) if skew is not None and failed is not None else None
    if failed is None and hit is not None and "connect" not in hit.line.text and "Bootstrap" not in hit.line.text:
        return None
    if failed is None and hit is None:
        return None
    address = (hit["address"] or hit["other"]) if hit else "127.0.1.1"
    host = hosts[1] if hosts else "$(hostname)"
    node = node_of(hit.line) if hit else ""
    own = node or "$(hostname -I | cut -d' ' -f1)"
    quotes: list[Quote] = [each.line.quote() for each in (hit, failed) if each is not None]
    if hosts:
        quotes.append(hosts[0])
    named = f"{host} " if hosts else ""
    return Found(
        cause=Words(
            f"The host name {named}resolves to {address}, a loopback address: the rank announces it, and the other nodes then connect to themselves."
            " The hosts file writes that line on installation; firewalls and GPUs are not involved.",
            f"主机名 {named}解析为回环地址 {address}：该 rank 通告此地址后，其他节点都连到了自己。这行由系统安装时写入 hosts 文件，与防火墙和 GPU 无关。",
        ),
        evidence=quotes,
        fixes=[
            Fix(
                Words("let the name resolve to the routable address, on every node", "在每个节点上让主机名解析到可路由地址"),
                f'sudo sed -i "s/^127\\.0\\.1\\.1.*/{own} {host}/" /etc/hosts',
            ),
            *_name_the_interface(case, node)[:2],
        ],
        verify=Words(
            "`getent ahostsv4 $(hostname)` on every node prints the address of the shared network",
            "在每个节点执行 `getent ahostsv4 $(hostname)`，输出共用网络的地址",
        ),
        confidence=STATED if failed is not None else 0.75,
        explains=("D5", "D4", "D11", "N19"),
    )


def _hosts(case: Case) -> tuple[Quote, str] | None:
    for name, text in case.context.members("files").items():
        if "hosts" in name and (found := _HOSTS.search(str(text))):
            return Quote(f"context:files.{name}", None, found[0].strip()), found[2]
    return None


def _clock(hit: Hit) -> Found:
    return Found(
        cause=Words(
            "The clocks of the nodes differ, as this line says: leases and timeouts of the meeting then end at the wrong time.",
            "如该行所示，节点间时钟不一致：汇合过程的租约与超时会在错误的时刻触发。",
        ),
        evidence=[hit.quote()],
        fixes=[Fix(Words("synchronise all nodes", "同步所有节点的时钟"), "sudo timedatectl set-ntp true")],
        verify=Words("`timedatectl` on every node says `System clock synchronized: yes`", "每个节点的 `timedatectl` 显示 `System clock synchronized: yes`"),
        confidence=0.6,
        title=Words("Clocks of the nodes differ", "节点时钟不一致"),
    )


RULES: Final = (
    Rule(
        id="D5",
        title=Words("Ranks announce an address that others cannot reach", "rank 通告了其他节点无法访问的地址"),
        symptoms=Words(
            "`Bootstrap: Using docker0|lo`, `Using the loopback address as fallback`, `connectFullMesh failed` with `remote=[127.0.0.1]`",
            "`Bootstrap: Using docker0|lo`、`Using the loopback address as fallback`、`connectFullMesh failed` 且 `remote=[127.0.0.1]`",
        ),
        why=Words("the wrong interface was chosen, or the host name resolves to loopback", "选错了网卡，或主机名解析到回环地址"),
        needs=Words("interfaces and routes of each node, the environment of the workers", "各节点的网卡与路由、worker 的环境变量"),
        remedy=Words(
            "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME (and VLLM_HOST_IP) inside the worker's environment",
            "在 worker 环境中设置 NCCL_SOCKET_IFNAME 与 GLOO_SOCKET_IFNAME（以及 VLLM_HOST_IP）",
        ),
        check=Words("the bootstrap line shows the routable address", "bootstrap 行显示可路由地址"),
        judge=wrong_interface,
        sees=(BOOTSTRAP, ANY_BOOTSTRAP, FALLBACK, MESH, REMOTE, DIALS_LOOPBACK, NO_PEER, WAITED, RAY_ADDRESS),
    ),
    Rule(
        id="D14",
        title=Words("The host name resolves to loopback", "主机名解析到回环地址"),
        symptoms=Words("127.0.1.1 in addresses of ranks", "rank 的地址为 127.0.1.1"),
        why=Words("the hosts file gives the own name a loopback address", "hosts 文件把本机名指向回环地址"),
        needs=Words("`getent ahosts $(hostname)` on every node", "在每个节点执行 `getent ahosts $(hostname)`"),
        remedy=Words("correct the hosts file", "修正 hosts 文件"),
        check=Words("the bootstrap line shows the routable address", "bootstrap 行显示可路由地址"),
        judge=name_is_loopback,
        sees=(RESOLVES, UNRESOLVED, SKEW, MESH, REMOTE, NO_PEER, DIALS_LOOPBACK),
    ),
)
