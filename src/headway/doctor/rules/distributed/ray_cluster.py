"""Ray: no room for the placement group (D9), a pipeline step whose answer never comes (D19)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import isfinite
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import split_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

WAITING: Final = sight("creating a placement group", pattern=r"Waiting for creating a placement group of specs for (?P<seconds>\d+) seconds", series=True)
NO_NODE: Final = sight("No available node types can fulfill", pattern=r"No available node types can fulfill resource request[s]? (?P<what>.*?)(?:\. Add|$)")
NO_GROUP: Final = sight(
    "Cannot provide a placement group",
    "number of required GPUs exceeds",
    "number of required",
    "cannot be scheduled right now",
    pattern=r"Cannot provide a placement group|number of required \w+s exceeds the total number|cannot be scheduled right now",
)
NODE_IN_SPEC: Final = sight("'node:", pattern=r"'node:(?P<ip>[\d.]+)'")
CLUSTER: Final = sight("Ray cluster at address", pattern=r"Ray cluster at address: (?P<address>\d[\d.]+)(?::(?P<port>\d+))?")
IN_USE: Final = sight(".0 GPU", pattern=r"\b(?P<used>[\d.]{1,12})/(?P<total>[\d.]{1,12}) GPU\b")
IDENTITY: Final = sight(
    "unique IP address",
    "Current node has no GPU available",
    "current platform",
    "no GPU available",
    pattern=r"Every node should have a unique IP address|[Cc]urrent node has no \w+ available",
)
CHANNEL: Final = sight("RayChannelTimeoutError", "RayCgraphCapacityExceeded", pattern=r"RayChannelTimeoutError")
_STUCK_SAMPLES: Final = 4
_STUCK_SECONDS: Final = 300
STAGE: Final = sight("PP rank ", pattern=r"PP rank (?P<stage>[1-9]\d*)")
GET_TIMEOUT: Final = sight("RAY_CGRAPH_get_timeout", pattern=r"RAY_CGRAPH_get_timeout(?: is set to |=|[^.]{0,24}? currently )(?P<seconds>\d+)")


@dataclass(frozen=True, slots=True)
class _Cluster:
    """GPUs of each node; empty when unknown. `total` may be known without them."""

    gpus: tuple[int, ...]
    addresses: tuple[str, ...]
    total: int | None
    quotes: tuple[Quote, ...]


def _count(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) and isfinite(value) else int(value) if isinstance(value, str) and value.isdecimal() else 0


def _cluster(case: Case) -> _Cluster:
    nodes = [node for node in case.context.items("host.ray.nodes") if isinstance(node, dict)]
    gpus = tuple(_count(node.get("gpus", node.get("GPU"))) for node in nodes)
    if nodes:
        shown = ", ".join(f"{node.get('ip', '?')}: {count} GPUs" for node, count in zip(nodes, gpus, strict=True))
        return _Cluster(gpus, tuple(str(node.get("ip", "")) for node in nodes), sum(gpus), (case.context.quote("host.ray.nodes", shown),))
    used = case.log.last(IN_USE)
    if used is not None:
        return _Cluster((), (), int(float(used["total"])), (used.quote(),))
    return _Cluster((), (), None, ())


def placement_has_no_room(case: Case) -> Found | None:
    waits = case.log.hits(WAITING)
    stated = case.log.first(NO_NODE, NO_GROUP)
    identity = case.log.first(IDENTITY)
    if case.startup.ready or (not waits and stated is None and identity is None):
        return None
    first = stated or (waits[-1] if waits else identity)
    assert first is not None
    last_line = max(hit.line.number for hit in (*waits, first))
    progress = case.startup.hit
    if stated is None and identity is None and progress is not None and progress.line.number > last_line and case.startup.reached("loading"):
        return None  # it was placed in the end
    cluster, split = _cluster(case), split_of(case)
    wanted = _wanted_node(case)
    if cluster.total is not None and cluster.total >= split.world:
        return _address(case, first, cluster, split.world, wanted)
    if identity is not None and stated is None:
        return _address(case, identity, cluster, split.world, wanted)
    return _too_small(case, first, waits, cluster)


def _wanted_node(case: Case) -> str:
    hit = case.log.first(NODE_IN_SPEC)
    return hit["ip"] if hit else case.context.text("env.VLLM_HOST_IP")


def _too_small(case: Case, first: Hit, waits: tuple[Hit, ...], cluster: _Cluster) -> Found:
    split = split_of(case)
    world = split.world
    waited = max((int(hit["seconds"]) for hit in waits), default=0)
    have = Words("which the cluster does not have", "而集群没有这么多")
    if cluster.total is not None:
        parts = f" ({' + '.join(map(str, cluster.gpus))})" if len(cluster.gpus) > 1 else ""
        parts_zh = f"（{' + '.join(map(str, cluster.gpus))}）" if len(cluster.gpus) > 1 else ""
        have = Words(
            f"the cluster has {cluster.total}{parts}: {world - cluster.total} are missing",
            f"而集群只有 {cluster.total} 张{parts_zh}，缺 {world - cluster.total} 张",
        )
    since = Words(
        f" It has waited {waited} s; that request can never be placed." if waited else "", f"已等待 {waited} 秒，这个请求永远无法满足。" if waited else ""
    )
    return Found(
        cause=Words(
            f"The split needs {world} GPUs ({split.tensor} x {split.pipeline}), {have.en}.{since.en}",
            f"并行配置需要 {world} 张 GPU（{split.tensor} x {split.pipeline}），{have.zh}。{since.zh}",
        ),
        evidence=[first.quote(), *(hit.quote() for hit in waits[-1:] if hit is not first), *cluster.quotes],
        fixes=_placements(case, cluster, world),
        verify=Words(
            f"`ray status` shows at least {world} GPUs under Resources, and the next start goes on to `Starting to load model`",
            f"`ray status` 的 Resources 中至少有 {world} 张 GPU，且下次启动进入 `Starting to load model`",
        ),
        confidence=STATED if cluster.total is not None else 0.85,
        explains=("D2",),
    )


def _placements(case: Case, cluster: _Cluster, world: int) -> list[Fix]:
    fixes = []
    if cluster.total and cluster.gpus:
        tensor = math.gcd(*cluster.gpus)
        split = split_of(case)
        while tensor > split.tensor or (split.tensor % tensor and tensor > 1):
            tensor = next(size for size in range(tensor - 1, 0, -1) if math.gcd(*cluster.gpus) % size == 0)
        stages = cluster.total // tensor
        fixes.append(
            Fix(
                Words(
                    f"use the {cluster.total} GPUs that are there, tensor ranks inside a node ({tensor} each, {stages} stages)",
                    f"使用现有的 {cluster.total} 张 GPU，张量并行限制在节点内（每组 {tensor} 张，{stages} 个流水线阶段）",
                ),
                f"--tensor-parallel-size {tensor} --pipeline-parallel-size {stages}",
            )
        )
    elif cluster.total:
        fixes.append(
            Fix(
                Words(f"a split over the {cluster.total} GPUs that are there", f"按现有的 {cluster.total} 张 GPU 拆分"),
                f"--tensor-parallel-size {cluster.total} --pipeline-parallel-size 1",
            )
        )
    head = case.log.first(CLUSTER)
    address = f"{head['address']}:{head['port'] or 6379}" if head else "$RAY_ADDRESS"
    lacking = world - cluster.total if cluster.total is not None else world
    fixes.append(
        Fix(
            Words(f"or join nodes with {lacking} more GPUs, on each of them", f"或加入还差的 {lacking} 张 GPU，在新节点上执行"),
            f"ray start --address={address}",
        )
    )
    fixes.append(Fix(Words("compare the GPU count per node with what the split asks for", "核对每个节点的 GPU 数与拆分需求"), "ray status"))
    return fixes


def _address(case: Case, first: Hit, cluster: _Cluster, world: int, wanted: str) -> Found | None:
    """Enough GPUs: then the node that the group asks for is none of Ray's."""
    known = [address for address in cluster.addresses if address]
    if "node:" not in first.line.text and not wanted and "unique" not in first.line.text and "no " not in first.line.text:
        return None
    foreign = bool(wanted and known and wanted not in known)
    twice = "unique" in first.line.text
    own = known[0] if known else "$(hostname -I | cut -d' ' -f1)"
    if foreign:
        cause = Words(
            f"The group asks for node {wanted}, but Ray knows the nodes {', '.join(known)}: VLLM_HOST_IP (or the interface that was chosen) is not the address Ray uses."
            f" GPUs are enough ({cluster.total} for {world}).",
            f"资源请求指定节点 {wanted}，而 Ray 中的节点是 {', '.join(known)}：VLLM_HOST_IP（或所选网卡）与 Ray 使用的地址不同。GPU 数量足够（{cluster.total} 张，需要 {world} 张）。",
        )
    elif twice:
        cause = Words(
            "Two nodes report the same address: VLLM_HOST_IP is set to one value everywhere. Each node needs its own, the one Ray knows it by.",
            "有两个节点上报了相同地址：所有节点的 VLLM_HOST_IP 设成了同一个值。每个节点需要各自的地址，即 Ray 所知的地址。",
        )
    else:
        have = f"{cluster.total} GPUs" if cluster.total is not None else "its GPUs"
        cause = Words(
            f"The cluster has {have} for {world} ranks, but not on the node that was asked for{f' ({wanted})' if wanted else ''}: GPUs are taken by another job, or"
            " the server was started on a node without any.",
            f"集群共有 {have}，需要 {world} 个 rank，但所请求的节点{f'（{wanted}）' if wanted else ''}上没有：GPU 被其他任务占用，或服务启动在没有 GPU 的节点上。",
        )
    return Found(
        cause=cause,
        evidence=[first.quote(), *cluster.quotes],
        fixes=_address_fixes(own, foreign, twice),
        verify=Words(
            "`ray list nodes` shows the address in VLLM_HOST_IP of every node, and the group is placed within 10 s",
            "`ray list nodes` 中各节点地址与其 VLLM_HOST_IP 一致，且 10 秒内完成放置",
        ),
        confidence=0.9 if foreign or twice else 0.7,
    )


def _address_fixes(own: str, foreign: bool, twice: bool) -> list[Fix]:
    if twice:
        return [
            Fix(
                Words(
                    "on each node, before `ray start`: its own address instead of the one that all have (in containers with a bridge all see the same one: --network host)",
                    "在每个节点的 `ray start` 之前：设为该节点自己的地址，而不是所有节点共用的那个（桥接网络的容器看到的地址相同：使用 --network host）",
                ),
                "export VLLM_HOST_IP=$(ip -4 route get 1.1.1.1 | sed -n 's/.* src \\([^ ]*\\).*/\\1/p')",
            ),
            Fix(Words("or remove the variable everywhere and let each node find its own", "或在所有节点删除该变量，让各节点自行判断"), "unset VLLM_HOST_IP"),
        ]
    address = Fix(
        Words("set the address that Ray shows for this node, on each node its own, before `ray start`", "在 `ray start` 之前，在每个节点设置 Ray 为该节点显示的地址"),
        f"export VLLM_HOST_IP={own}",
    )
    if foreign:
        return [address]
    return [Fix(Words("end what holds the GPUs: see who has them", "结束占用 GPU 的任务：查看占用者"), "ray list placement-groups && ray status"), address]


def pipeline_step_hangs(case: Case) -> Found | None:
    hit = case.log.first(CHANNEL)
    split = split_of(case)
    if hit is None or (case.exceptions.first and case.exceptions.first[0].line.number < hit.line.number and "Ray" not in case.exceptions.first[0].line.text):
        return _silent_pipeline(case)
    limit = case.log.last(GET_TIMEOUT)
    seconds = int(limit["seconds"]) if limit else 10
    longer = max(300, 2 * seconds)
    return Found(
        cause=Words(
            f"A step over {split.pipeline} pipeline stages and {split.tensor} tensor ranks gave no answer within Ray's limit for compiled graphs ({seconds} s): a stage is slower"
            " than that (long prefill, first compile), or stuck in the channel between nodes. The engine's later exceptions follow from it.",
            f"跨 {split.pipeline} 个流水线阶段、{split.tensor} 个张量并行 rank 的一步，在 Ray 编译图的时限（{seconds} 秒）内没有结果：某个阶段更慢（长 prefill、首次编译），"
            "或卡在节点间通道上。引擎随后的异常由此而来。",
        ),
        evidence=[hit.quote(), *([limit.quote()] if limit else [])],
        fixes=[
            Fix(
                Words("let a slow step end, in the environment of all nodes before `ray start`", "让慢步骤得以完成，在所有节点 `ray start` 之前设置"),
                f"export RAY_CGRAPH_get_timeout={longer}",
            ),
            Fix(
                Words(
                    "if it never ends: connect the stages without Ray's channels (plain processes on each node)",
                    "若始终不结束：不用 Ray 通道连接各阶段（各节点使用普通进程）",
                ),
                "--distributed-executor-backend mp --nnodes 2",
            ),
        ],
        verify=Words(
            f"the request that failed is answered, or `RayChannelTimeoutError` comes again after {longer} s, which means stuck, not slow: compare each rank's last line",
            f"重发失败的请求能得到回答；若 {longer} 秒后仍出现 `RayChannelTimeoutError`，说明是卡死而非慢：比较每个 rank 的最后一行",
        ),
        confidence=0.85,
        explains=("D17",),
    )


def _silent_pipeline(case: Case) -> Found | None:
    """Requests are taken, no token comes, over several intervals, with stages on Ray."""
    split = split_of(case)
    if split.pipeline < 2 or "ray" not in case.launch.value("distributed_executor_backend"):
        return None
    stage = case.log.last(STAGE)
    age = case.context.number("host.log_age_s") or 0
    if stage is not None and age >= _STUCK_SECONDS and not case.startup.ready and not case.exceptions.first and not case.exceptions.umbrellas:
        return _start_stopped(case, stage, age, split.pipeline)
    stuck = [sample for sample in case.load if (sample.running or 0) > 0 and sample.generation_rate == 0 and not sample.prompt_rate]
    if len(stuck) < _STUCK_SAMPLES or stuck[-1] is not case.load[-1]:
        return None
    return Found(
        cause=Words(
            f"{stuck[-1].running:g} requests run over {split.pipeline} pipeline stages on Ray and no token has come for {len(stuck)} intervals: one stage waits for another across the nodes.",
            f"{stuck[-1].running:g} 个请求运行在 Ray 上的 {split.pipeline} 个流水线阶段，连续 {len(stuck)} 个统计周期没有产出 token：某个阶段在跨节点等待另一个。",
        ),
        evidence=[stuck[0].quote, stuck[-1].quote],
        fixes=[
            Fix(Words("dump the stack of each worker, then restart all stages", "导出每个 worker 的调用栈，然后重启所有阶段"), "ray stack"),
            Fix(
                Words("connect the stages without Ray (plain processes on each node)", "不用 Ray 连接各阶段（各节点使用普通进程）"),
                "--distributed-executor-backend mp --nnodes 2",
            ),
        ],
        verify=Words(
            "a completion of 1 token is answered, and the next statistics line shows tokens/s above 0",
            "1 个 token 的补全能返回，下一条统计行的 tokens/s 大于 0",
        ),
        confidence=0.8,
        explains=("N16",),
    )


def _start_stopped(case: Case, stage: Hit, age: float, stages: int) -> Found:
    return Found(
        cause=Words(
            f"The {stages} pipeline stages on Ray were set up, then nothing came for {age:g} s and the server is not ready: a stage waits for the other across the nodes. The log has no error; each rank's last line tells which.",
            f"Ray 上的 {stages} 个流水线阶段已建立，随后 {age:g} 秒没有输出且服务未就绪：某个阶段在跨节点等待另一个。日志没有错误；每个 rank 的最后一行能看出是哪一个。",
        ),
        evidence=[stage.quote(), case.context.quote("host.log_age_s")],
        fixes=[
            Fix(Words("dump the stack of every worker to see who waits", "导出每个 worker 的调用栈，看谁在等待"), "ray stack"),
            Fix(
                Words("connect the stages without Ray (plain processes on each node)", "不用 Ray 连接各阶段（各节点使用普通进程）"),
                f"--distributed-executor-backend mp --nnodes {max(2, len(case.context.items('host.ray.nodes')))}",
            ),
        ],
        verify=Words(
            "every rank's last line is of the same step, and the log goes on to `Application startup complete`",
            "每个 rank 的最后一行处于同一步骤，且日志到达 `Application startup complete`",
        ),
        confidence=0.6,
    )


RULES: Final = (
    Rule(
        id="D9",
        title=Words("Ray cannot place the ranks", "Ray 无法放置各 rank"),
        symptoms=Words(
            "`Waiting for creating a placement group`, `No available node types can fulfill resource request`",
            "`Waiting for creating a placement group`、`No available node types can fulfill resource request`",
        ),
        why=Words(
            "tp x pp is more than the GPUs of the cluster, or the node asked for is none of Ray's", "tp x pp 超过集群 GPU 数，或请求的节点不是 Ray 的节点"
        ),
        needs=Words("GPUs of each node, VLLM_HOST_IP against Ray's addresses", "各节点 GPU 数、VLLM_HOST_IP 与 Ray 地址"),
        remedy=Words("another split, more nodes, the right VLLM_HOST_IP", "调整拆分、增加节点、修正 VLLM_HOST_IP"),
        check=Words("`ray status`", "`ray status`"),
        judge=placement_has_no_room,
        sees=(WAITING, NO_NODE, NO_GROUP, NODE_IN_SPEC, CLUSTER, IN_USE, IDENTITY),
    ),
    Rule(
        id="D19",
        title=Words("A pipeline on Ray hangs", "Ray 上的流水线挂起"),
        symptoms=Words("`RayChannelTimeoutError`, or running requests without tokens", "`RayChannelTimeoutError`，或有运行中的请求却没有 token"),
        why=Words("a stage is slower than Ray's limit, or waits for another", "某个阶段慢于 Ray 的时限，或在等待另一阶段"),
        needs=Words("last line of each rank", "每个 rank 的最后一行"),
        remedy=Words("RAY_CGRAPH_get_timeout, or plain processes instead of Ray", "RAY_CGRAPH_get_timeout，或用普通进程代替 Ray"),
        check=Words("per-rank last line", "每个 rank 的最后一行"),
        judge=pipeline_step_hangs,
        sees=(CHANNEL, GET_TIMEOUT, STAGE),
    ),
)
