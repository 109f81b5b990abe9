"""Rank variables: ignored by the program, equal on two nodes, or two ranks on one GPU (D3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.distributed.gpu_shares import TOO_FEW
from headway.doctor.rules.distributed.ranks import serve_command, split_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

VARIABLES: Final = sight("RANK=", "WORLD_SIZE=", "MASTER_ADDR=", pattern=r"(?<![\w-])(?:MASTER_ADDR|MASTER_PORT|(?:NODE_|GROUP_)?RANK|WORLD_SIZE)=\S+")
DUPLICATE_GPU: Final = sight(
    "Duplicate GPU detected", pattern=r"Duplicate GPU detected ?: rank (?P<first>\d+) and rank (?P<second>\d+) both on (?P<device>.*\S)"
)
LAUNCHED: Final = sight("torchrun", "torch.distributed.run", "torch.distributed.launch")
FAILED: Final = sight(
    "DistNetworkError", "DistStoreError", "connectFullMesh failed", "client socket has timed out", "server socket has failed to listen", "store based barrier"
)
_PAIR: Final = re.compile(r"(?<![\w-])(MASTER_ADDR|MASTER_PORT|(?:NODE_|GROUP_)?RANK|WORLD_SIZE)=['\"]?([^\s'\";]+)")


def rank_variables(case: Case) -> Found | None:
    duplicate = case.log.first(DUPLICATE_GPU)
    if duplicate is not None:
        return _two_ranks_one_gpu(duplicate)
    lines = [(hit, dict(_PAIR.findall(hit.line.text))) for hit in case.log.hits(VARIABLES)]
    too_few = case.log.first(TOO_FEW)
    names = {name for _, values in lines for name in values} | {name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR") if case.context.has(f"env.{name}")}
    launched = case.log.sees(LAUNCHED) or "torchrun" in case.launch.command or "external_launcher" in case.launch.value("distributed_executor_backend")
    if too_few is not None and not launched and names & {"RANK", "WORLD_SIZE", "MASTER_ADDR"}:
        return _ignored(case, lines, too_few)
    if case.startup.ready or not case.log.sees(FAILED):
        return None
    return _at_odds(lines)


def _ignored(case: Case, lines: list[tuple[Hit, dict[str, str]]], too_few: Hit) -> Found:
    """The variables do not reach vLLM: each node starts alone and finds too few GPUs."""
    values: dict[str, str] = {}
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        if case.context.has(f"env.{name}"):
            values[name] = case.context.text(f"env.{name}")
    for _, given in reversed(lines):
        values |= given
    world, gpus = int(too_few["world"]), max(1, int(too_few["gpus"]))
    nodes = max(2, -(-world // gpus))
    split = split_of(case)
    address = values.get("MASTER_ADDR", "$(hostname -i)")
    port = values.get("MASTER_PORT", "29501")
    common = f"--tensor-parallel-size {split.tensor} --pipeline-parallel-size {split.pipeline} --nnodes {nodes} --master-addr {address} --master-port {port}"
    repeated = [rank for rank, count in Counter(given["RANK"] for _, given in lines if "RANK" in given).items() if count > 1]
    also = (
        Words(
            f" RANK={repeated[0]} is even set on {_count(lines, repeated[0])} nodes.",
            f"而且有 {_count(lines, repeated[0])} 个节点都设置了 RANK={repeated[0]}。",
        )
        if repeated
        else Words("", "")
    )
    fixes = [
        Fix(Words("first node", "第一个节点"), serve_command(case, f"{common} --node-rank 0")),
        *(
            Fix(Words(f"node {rank + 1} of {nodes}", f"第 {rank + 1} 个节点（共 {nodes} 个）"), serve_command(case, f"{common} --node-rank {rank} --headless"))
            for rank in range(1, min(nodes, 4))
        ),
    ]
    return Found(
        cause=Words(
            f"RANK, WORLD_SIZE and MASTER_ADDR are variables of torchrun; `vllm serve` does not read them, so every node starts alone and finds {gpus} GPUs"
            f" for {world} ranks ({split.tensor} x {split.pipeline}).{also.en} Several nodes are joined by --nnodes, --node-rank and --master-addr.",
            f"RANK、WORLD_SIZE、MASTER_ADDR 是 torchrun 的变量，`vllm serve` 不会读取，因此每个节点都独自启动，{world} 个 rank"
            f"（{split.tensor} x {split.pipeline}）只找到 {gpus} 张 GPU。{also.zh}多节点要用 --nnodes、--node-rank 和 --master-addr 组网。",
        ),
        evidence=[*_quotes(case, lines), too_few.quote()],
        fixes=fixes,
        verify=Words(
            f"the logs of all nodes together show `rank N in world size {world}` once for each of the {world} ranks 0 to {world - 1}",
            f"所有节点的日志合起来，`rank N in world size {world}` 对 rank 0 到 {world - 1} 各出现一次",
        ),
        confidence=STATED,
        explains=("D2", "D9"),
    )


def _count(lines: list[tuple[Hit, dict[str, str]]], rank: str) -> int:
    return sum(given.get("RANK") == rank for _, given in lines)


def _quotes(case: Case, lines: list[tuple[Hit, dict[str, str]]]) -> list[Quote]:
    if lines:
        return [hit.quote() for hit, _ in lines[:2]]
    return [
        case.context.quote(f"env.{name}", f"{name}={case.context.text(f'env.{name}')}")
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")
        if case.context.has(f"env.{name}")
    ]


def _at_odds(lines: list[tuple[Hit, dict[str, str]]]) -> Found | None:
    """The same rank twice, or several master addresses."""
    ranks: Counter[str] = Counter()
    for _, given in lines:
        name = next((name for name in ("RANK", "NODE_RANK", "GROUP_RANK") if name in given), None)
        if name:
            ranks[f"{name}={given[name]}"] += 1
    twice = next((rank for rank, count in ranks.items() if count > 1), None)
    addresses = list(dict.fromkeys(given["MASTER_ADDR"] for _, given in lines if "MASTER_ADDR" in given))
    if twice is None and len(addresses) < 2:
        return None
    world = _first(lines, "WORLD_SIZE") or str(max(2, sum(ranks.values())))
    problems = []
    if twice:
        problems.append(Words(f"{twice} is set {ranks[twice]} times", f"{twice} 被设置了 {ranks[twice]} 次"))
    if len(addresses) > 1:
        shown = ", ".join(addresses[:4])
        problems.append(Words(f"the nodes name different masters ({shown})", f"各节点的主节点地址不同（{shown}）"))
    variable = (twice or "RANK=0").partition("=")[0]
    port = _first(lines, "MASTER_PORT") or "29500"
    master = addresses[0] if addresses else "$(hostname -i)"
    return Found(
        cause=Words(
            f"The rank variables contradict each other: {' and '.join(problem.en for problem in problems)}. The group of {world} never becomes complete,"
            " whatever the network does.",
            f"rank 变量互相矛盾：{'，且'.join(problem.zh for problem in problems)}。{world} 个成员的进程组永远凑不齐，与网络无关。",
        ),
        evidence=[hit.quote() for hit, _ in lines[:4]],
        fixes=[
            Fix(
                Words(
                    f"number the members 0 to {int(world) - 1 if world.isdigit() else 1}, one address for all; on the first node",
                    f"成员编号为 0 到 {int(world) - 1 if world.isdigit() else 1}，所有节点用同一地址；第一个节点",
                ),
                f"export MASTER_ADDR={master} MASTER_PORT={port} WORLD_SIZE={world} {variable}=0",
            ),
            Fix(Words("on the second", "第二个节点"), f"export MASTER_ADDR={master} MASTER_PORT={port} WORLD_SIZE={world} {variable}=1"),
            Fix(
                Words("`vllm serve` reads none of these: use its own flags there", "`vllm serve` 不读取这些变量，应使用它自己的参数"),
                f"--nnodes {world} --node-rank 1 --master-addr {master} --master-port {port} --headless",
            ),
        ],
        verify=Words(
            f"the logs of all nodes together show each rank once, `rank 0` to `rank {int(world) - 1 if world.isdigit() else 1}`",
            f"所有节点的日志合起来，`rank 0` 到 `rank {int(world) - 1 if world.isdigit() else 1}` 各出现一次",
        ),
        confidence=0.9,
        explains=("D4", "D8", "D11"),
    )


def _first(lines: list[tuple[Hit, Mapping[str, str]]] | list[tuple[Hit, dict[str, str]]], name: str) -> str | None:
    return next((given[name] for _, given in lines if name in given), None)


def _two_ranks_one_gpu(hit: Hit) -> Found:
    first, second, device = hit["first"], hit["second"], hit["device"]
    return Found(
        cause=Words(
            f"Rank {first} and rank {second} chose the same card ({device}): LOCAL_RANK is equal in both, or both see only that card. NCCL refuses two ranks"
            " on one GPU; the `invalid usage` that follows is its consequence.",
            f"rank {first} 与 rank {second} 选中了同一张卡（{device}）：两者的 LOCAL_RANK 相同，或都只能看到这张卡。NCCL 不允许两个 rank 共用一张 GPU，"
            "随后的 `invalid usage` 是其后果。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words("let one launcher number the processes of the node", "由同一个启动器为本节点的进程编号"),
                f"torchrun --standalone --nproc-per-node {int(second) - int(first) + 1 if int(second) > int(first) else 2}",
            ),
            Fix(
                Words("processes that are started by hand: each its own number and card", "手工启动的进程：各自的编号与显卡"),
                f"LOCAL_RANK={second} CUDA_VISIBLE_DEVICES={','.join(map(str, range(int(second) + 1)))}",
            ),
        ],
        verify=Words(
            "with NCCL_DEBUG=INFO each rank's `Init COMPLETE` line shows another busId",
            "设置 NCCL_DEBUG=INFO，各 rank 的 `Init COMPLETE` 行显示不同的 busId",
        ),
        confidence=0.9,
        title=Words("Two ranks on one GPU", "两个 rank 使用同一张 GPU"),
        explains=("D10",),
    )


RULES: Final = (
    Rule(
        id="D3",
        title=Words("Rank variables are ignored or contradict each other", "rank 变量被忽略或互相矛盾"),
        symptoms=Words(
            "RANK and WORLD_SIZE are set and every node says `World size (W) is larger than the number of available GPUs`",
            "设置了 RANK、WORLD_SIZE，但每个节点都报 `World size (W) is larger than the number of available GPUs`",
        ),
        why=Words("`vllm serve` takes the shape of the cluster from flags", "`vllm serve` 的集群形态来自命令行参数"),
        needs=Words("the command and variables of every node", "每个节点的命令与环境变量"),
        remedy=Words(
            "--nnodes, --node-rank, --master-addr, --master-port; --headless on the others",
            "--nnodes、--node-rank、--master-addr、--master-port；其余节点加 --headless",
        ),
        check=Words("one line for each rank", "每个 rank 各有一行"),
        judge=rank_variables,
        sees=(VARIABLES, DUPLICATE_GPU, LAUNCHED, FAILED, TOO_FEW),
    ),
)
