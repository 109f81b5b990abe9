"""The processes do not find each other: the meeting point cannot be reached (D4), or its port is taken (D8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.distributed.ranks import split_of
from headway.doctor.rules.quoted import probes_about, quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

TIMED_OUT: Final = sight(
    "client socket has timed out",
    "client failed to connect/validate to host",
    pattern=r"client socket has timed out after (?P<after>\d+(?:\.\d+)?) ?(?P<unit>ms|s)\b while trying to connect to \((?P<host>[^,)]+), ?(?P<port>\d+)\)",
)
FEW_JOINED: Final = sight(
    "waiting for clients",
    "store based barrier",
    pattern=r"Timed out after (?P<after>\d+) seconds waiting for clients\. (?P<joined>\d+)/(?P<all>\d+) clients joined"
    r"|store based barrier.*world_size=(?P<world>\d+), worker_count=(?P<workers>\d+)",
)
NEVER_WRITTEN: Final = sight("wait timeout after ", pattern=r"wait timeout after (?P<after>\d+) ?ms(?:, keys: (?P<keys>\S+))?")
CANNOT_CONNECT: Final = sight(
    "client socket has failed to connect",
    pattern=r"client socket has failed to connect to (?:\[?(?P<host>[\w.:\-]+?)\]?):(?P<port>\d+) \((?:errno|error): ?(?P<errno>\d+)",
)
HIGH_PORT: Final = sight(
    "remote=[",
    "Connect to ",
    "connect to ",
    pattern=r"^(?=.*(?:timed out|No route to host|Network is unreachable))(?:.*remote=\[(?P<host>(?!127\.)[\d.]+)\]:(?P<port>\d+)|.*[Cc]onnect to (?P<peer>(?!127\.)[\d.]+)<(?P<high>\d+)>)",
)
TAKEN: Final = sight(
    "server socket has failed to",
    "name: EADDRINUSE",
    "(EADDRINUSE)",
    pattern=r"server socket has failed to (?P<what>bind|listen)|EADDRINUSE",
)
ZMQ_TAKEN: Final = sight("zmq.error.ZMQError", pattern=r"ZMQError: Address already in use(?: \(addr='(?P<address>[^']+)'\))?")
LAUNCHES: Final = sight("master-port", "master_port", "MASTER_PORT", "VLLM_PORT", pattern=r"(?:--master[-_]port[ =]|MASTER_PORT=|VLLM_PORT=)(?P<port>\d+)")
LAUNCHER: Final = sight("torchrun", "torch.distributed.run", pattern=r"torchrun|torch\.distributed\.run")
_PORT: Final = re.compile(r"port: (\d+)|\]:(\d{2,5})\b|[\d.]+:(\d{2,5})\b|:::?(\d{2,5})\b")
_REFUSED: Final = "111"


def rendezvous_unreachable(case: Case) -> Found | None:
    hit = case.log.first(TIMED_OUT)
    if hit is None or case.startup.ready:
        return _never_complete(case) if hit is None and not case.startup.ready else None
    host, port = hit["host"].strip(), hit["port"]
    seconds = hit.number("after") / (1000 if hit["unit"] == "ms" else 1)
    refused = next((each for each in case.log.hits(CANNOT_CONNECT) if each["errno"] == _REFUSED), None)
    if _is_local(host):
        return None  # the address itself is wrong, which is another cause
    quotes = [*quoted(hit, refused), *probes_about(case.context, host)]
    if refused:
        cause = Words(
            f"{host}:{port} answered, but nothing listened there for {seconds:g} s: the process of rank 0 did not start, died, or uses another port."
            " The network between the nodes works.",
            f"{host}:{port} 可达，但 {seconds:g} 秒内一直无进程监听：rank 0 未启动、已退出或用了别的端口。节点间网络是通的。",
        )
        fixes = [
            Fix(
                Words("on that node: see why rank 0 does not listen, and start it first", "在该节点上：查明 rank 0 为何没有监听，并先启动它"),
                f"ss -ltnp | grep :{port}",
            ),
            Fix(Words("give all nodes the same address and port", "所有节点使用同一地址和端口"), f"--master-addr {host} --master-port {port}"),
        ]
    else:
        cause = Words(
            f"No answer from the meeting point {host}:{port} for {seconds:g} s: packets between the nodes are dropped (firewall, security group, other"
            f" network), or that address is not routed from here. A port that answers ({port}) is not enough: NCCL and Gloo also connect on high ports, in both directions.",
            f"汇合点 {host}:{port} 在 {seconds:g} 秒内没有任何应答：节点之间的数据包被丢弃（防火墙、安全组、不同网络），或该地址从此处不可路由。"
            f"只放通端口 {port} 不够：NCCL 与 Gloo 还会双向使用高位端口。",
        )
        fixes = [
            Fix(
                Words(
                    f"open TCP {port} and the high ports 1024-65535 between the nodes, both ways; on {host} for the network of the others",
                    f"在节点之间双向开放 TCP {port} 及高位端口 1024-65535；在 {host} 上对其他节点所在网段",
                ),
                f"iptables -I INPUT -p tcp -s {_network(host)} --dport 1024:65535 -j ACCEPT",
            ),
            Fix(Words("and check each way", "并逐方向检查"), f"nc -zv -w 5 {host} {port}"),
        ]
    return Found(
        cause=cause,
        evidence=quotes,
        fixes=fixes,
        verify=Words(
            f"`nc -zv -w 5 {host} {port}` from every other node says `succeeded` while rank 0 waits; the start then shows one `rank N in world size` line per rank",
            f"rank 0 等待期间，在其余每个节点执行 `nc -zv -w 5 {host} {port}` 均显示 `succeeded`；随后每个 rank 各出现一行 `rank N in world size`",
        ),
        confidence=STATED if not refused else 0.85,
        explains=("D11", "N20", "N1"),
    )


def _high_port(case: Case, hit: Hit) -> Found:
    """The meeting worked; the connections that Gloo or NCCL open then do not."""
    host, port = hit["host"] or hit["peer"], hit["port"] or hit["high"]
    return Found(
        cause=Words(
            f"The ranks met, but the connection to {host} on the high port {port} gets no answer: only the master port is open between the nodes, and NCCL and Gloo choose high ports of their own.",
            f"各 rank 已汇合，但连接 {host} 的高位端口 {port} 没有应答：节点间只放通了主端口，而 NCCL 与 Gloo 会自选高位端口。",
        ),
        evidence=[hit.quote(), *probes_about(case.context, host)],
        fixes=[
            Fix(
                Words("open the ports 1024-65535 between the nodes, both ways; on each of them", "在节点之间双向开放端口 1024-65535；在每个节点上"),
                f"iptables -I INPUT -p tcp -s {_network(host)} --dport 1024:65535 -j ACCEPT",
            ),
            Fix(Words("and check a high port each way", "并逐方向检查高位端口"), f"nc -zv -w 5 {host} {port}"),
        ],
        verify=Words(
            f"`nc -l {port}` on {host} and `nc -zv -w 5 {host} {port}` from the other node say `succeeded`",
            f"在 {host} 上执行 `nc -l {port}`，在另一节点执行 `nc -zv -w 5 {host} {port}` 显示 `succeeded`",
        ),
        confidence=0.85,
        explains=("D11", "D17", "N20"),
    )


def _network(host: str) -> str:
    """The /24 of an address, for a rule that names the other nodes; the name itself when it is none."""
    parts = host.split(".")
    return ".".join((*parts[:3], "0/24")) if len(parts) == 4 and all(part.isdigit() for part in parts) else host


def _is_local(host: str) -> bool:
    return host.startswith("127.") or host in ("localhost", "::1")


def _never_complete(case: Case) -> Found | None:
    """The master's side: fewer members came than were expected."""
    high = case.log.first(HIGH_PORT)
    if high is not None:
        return _high_port(case, high)
    hit = case.log.first(FEW_JOINED)
    if hit is None:
        return _never_written(case)
    joined, everyone = int(hit["joined"] or hit["workers"]), int(hit["all"] or hit["world"])
    missing = everyone - joined
    if missing <= 0:
        return None
    return Found(
        cause=Words(
            f"Only {joined} of {everyone} processes reached the meeting point; {missing} never did. They were not started, failed before, name another address,"
            " or cannot reach this node.",
            f"{everyone} 个进程中只有 {joined} 个到达汇合点，{missing} 个从未到达：未启动、先前已失败、用了别的地址，或无法访问本节点。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words(f"see the last lines of the {missing} missing, and from their node", f"查看缺失的 {missing} 个进程的最后几行，并在其节点上检查"),
                "nc -zv -w 5 $MASTER_ADDR $MASTER_PORT",
            ),
            Fix(Words("start all of them with one address and one world size", "以同一地址和同一 world size 启动全部进程"), f"export WORLD_SIZE={everyone}"),
        ],
        verify=Words(
            f"`{everyone}/{everyone} clients joined`, or one `rank N in world size {everyone}` line per rank",
            f"出现 `{everyone}/{everyone} clients joined`，或每个 rank 一行 `rank N in world size {everyone}`",
        ),
        confidence=0.75,
    )


def _never_written(case: Case) -> Found | None:
    """A process that met the store waited for what another one had to put there."""
    hit = case.log.first(NEVER_WRITTEN)
    if hit is None or any(error.line.number < hit.line.number for error in case.exceptions.first if "Store" not in error.line.text):
        return None
    seconds, world = hit.number("after") / 1000, split_of(case).world
    who = f" ({hit.line.process})" if hit.line.process else ""
    keys = f" ({hit['keys']})" if hit["keys"] else ""
    ranks = f" Its world has {world} ranks." if world > 1 else ""
    return Found(
        cause=Words(
            f"This process{who} reached the store at the meeting point, then waited {seconds:g} s for an entry{keys} that another rank never wrote: that rank was not started, died, hangs, or cannot reach the store.{ranks}"
            " A longer limit only waits longer.",
            f"该进程{who}已连上汇合点的 store，随后等待 {seconds:g} 秒，但另一个 rank 始终没有写入所需的条目{keys}：该 rank 未启动、已退出、卡住，或无法访问 store。延长时限只会等得更久。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words("on every node: does its process live, and does it hold a connection to the store? Start the one that is missing", "在每个节点上：进程是否存活，是否与 store 保持连接？启动缺失的那个"),
                "ss -tnp | grep ${MASTER_PORT:-29501}",
            ),
            Fix(
                Words("from the node of the missing rank: open the way to the store if there is none", "在缺失 rank 的节点上：若不通，则放通到 store 的网络"),
                "nc -zv -w 5 $MASTER_ADDR ${MASTER_PORT:-29501}",
            ),
        ],
        verify=Words(
            "the logs of all nodes side by side: each rank prints `rank N in world size`, and none stops before it",
            "并排查看各节点日志：每个 rank 都打印 `rank N in world size`，没有哪个停在此前",
        ),
        confidence=0.75,
        explains=("D11", "D17"),
    )


def internal_port_taken(case: Case) -> Found | None:
    """Not the HTTP port: the one at which ranks meet."""
    zmq = case.log.first(ZMQ_TAKEN)
    hits = case.log.hits(TAKEN)
    failing = [hit for hit in hits if "EADDRINUSE" in hit.line.text or hit["what"] == "listen"]
    if zmq is None and not failing:
        return None
    first = failing[0] if failing else zmq
    assert first is not None
    port = next((found for hit in (*failing, *hits) if (found := _port(hit.line.text))), "")
    if not port and zmq is not None:
        port = _port(zmq["address"]) if zmq["address"] else ""
    sharing = [hit for hit in case.log.hits(LAUNCHES) if not port or hit["port"] == port]
    engines = len(sharing) if case.log.sees(LAUNCHES) else case.log.count(LAUNCHER)
    return Found(
        cause=_why(port, engines, len(failing)),
        evidence=[first.quote(), *(hit.quote() for hit in sharing[:2])],
        fixes=_own_ports(case, port, engines, sharing),
        verify=Words(
            f"`ss -ltnp | grep :{port or '29500'}` shows one process, and every engine passes `Init COMPLETE` or `rank N ready`",
            f"`ss -ltnp | grep :{port or '29500'}` 只显示一个进程，且每个引擎都越过 `Init COMPLETE` 或 `rank N ready`",
        ),
        confidence=STATED if port else 0.85,
        explains=("N18",),
    )


def _why(port: str, engines: int, failed: int) -> Words:
    where = port or "for the meeting of the ranks"
    where_zh = port or "用于各 rank 汇合"
    if engines > 1:
        return Words(
            f"{engines} engines on this host use the same internal port {where} for the meeting of their ranks; the first has it and"
            f" {engines - 1} fail with EADDRINUSE. Neither the HTTP port nor the network is involved.",
            f"本机有 {engines} 个引擎使用同一个内部汇合端口 {where_zh}；第一个占用后，其余 {engines - 1} 个以 EADDRINUSE 失败。与 HTTP 端口和网络无关。",
        )
    return Words(
        f"The internal port {where}, at which the ranks of this engine meet, belongs to another process already: another engine with the same master port, a"
        " process left from the last run, or one that took it between choosing and binding. The HTTP port is not involved.",
        f"本引擎各 rank 汇合所用的内部端口 {where_zh} 已被其他进程占用：使用同一 master port 的另一个引擎、上次运行的残留进程，或在选端口与绑定之间被抢占。与 HTTP 端口无关。",
    )


def _own_ports(case: Case, port: str, engines: int, sharing: Sequence[Hit]) -> list[Fix]:
    base = int(port) if port else 29500
    uses_torchrun = case.log.sees(LAUNCHER) or "torchrun" in case.launch.command
    if engines > 1:
        ports = ", ".join(str(base + index) for index in range(1, min(engines, 8)))
        distinct = Fix(
            Words(f"a distinct port for each engine: the first keeps {base}, the others {ports}", f"每个引擎用不同端口：第一个保留 {base}，其余用 {ports}"),
            f"--master-port {base + 1}",
        )
    else:
        distinct = Fix(Words(f"a port of its own instead of {base}", f"换用独立端口，不用 {base}"), f"--master-port {base + 1}")
    fixes = [distinct]
    if uses_torchrun:
        fixes.append(Fix(Words("or let torchrun choose a free port on one host", "单机时也可让 torchrun 自选空闲端口"), "torchrun --standalone"))
    if port:
        fixes.append(Fix(Words("a process left from an earlier run: find it and end it", "若是残留进程：找到并结束它"), f"ss -ltnp | grep :{port}"))
    return fixes


def _port(text: str) -> str:
    found = _PORT.search(text)
    return next((group for group in found.groups() if group), "") if found else ""


RULES: Final = (
    Rule(
        id="D4",
        title=Words("The meeting point of the ranks cannot be reached", "各 rank 的汇合点不可达"),
        symptoms=Words(
            "`client socket has timed out after 600000ms while trying to connect to (ip, port)`",
            "`client socket has timed out after 600000ms while trying to connect to (ip, port)`",
        ),
        why=Words("packets between the nodes are dropped, or rank 0 does not listen", "节点间数据包被丢弃，或 rank 0 没有监听"),
        needs=Words("a TCP probe both ways, also on high ports", "双向 TCP 探测，包括高位端口"),
        remedy=Words("open the port range between the nodes", "在节点之间开放端口范围"),
        check=Words("`nc -zv` to the address and port", "对该地址和端口执行 `nc -zv`"),
        judge=rendezvous_unreachable,
        sees=(TIMED_OUT, FEW_JOINED, NEVER_WRITTEN, CANNOT_CONNECT, HIGH_PORT),
    ),
    Rule(
        id="D8",
        title=Words("An internal port is taken", "内部端口被占用"),
        symptoms=Words("`EADDRINUSE`, `The server socket has failed to listen`", "`EADDRINUSE`、`The server socket has failed to listen`"),
        why=Words("several engines with one master port, or a race for a free one", "多个引擎共用一个 master port，或抢占空闲端口"),
        needs=Words("who has the port", "端口的占用者"),
        remedy=Words("a distinct --master-port per engine, --standalone", "每个引擎使用不同的 --master-port，或 --standalone"),
        check=Words("all engines start together", "所有引擎可同时启动"),
        judge=internal_port_taken,
        sees=(TAKEN, ZMQ_TAKEN, LAUNCHES, LAUNCHER),
    ),
)
