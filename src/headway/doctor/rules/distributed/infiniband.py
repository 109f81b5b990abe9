"""InfiniBand and RoCE: queue pairs that cannot be connected (D15)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

# "Failed to open libibverbs" and "NET/IB : No device found" are what a host without such cards prints
VERB: Final = sight(
    "Call to ibv_",
    "ibv_modify_qp",
    "ibv_create_qp",
    "ibv_reg_mr",
    "ibv_poll_cq",
    pattern=r"(?P<call>ibv_\w+)(?:\(\))? failed(?: with)?(?: error)? ?(?P<error>[^,]*)(?:.*?local GID index (?P<gid>\d+))?",
)
COMPLETION: Final = sight("Got completion", pattern=r"Got completion (?:from peer \S+ )?with (?:error|status)[ =]*(?P<status>\d+)|(?P<word>IBV_WC_\w+)")
GIDS: Final = sight(
    ":ffff:",
    "RoCE v2",
    pattern=r"^\s*(?:(?P<device>\w+)\s+\d+\s+(?P<index>\d+)\s+(?P<gid>[0-9a-f:]{20,})\s+(?P<ip>\d[\d.]+)\s+v2|GID\[\s*(?P<number>\d+)\]:\s+::ffff:\S+ RoCE v2)",
)
SET: Final = sight("NCCL_IB_GID_INDEX", pattern=r"NCCL_IB_GID_INDEX(?:=| set by environment to )(?P<index>\d+)")


def queue_pairs_fail(case: Case) -> Found | None:
    hit = case.log.first(VERB) or case.log.first(COMPLETION)
    if hit is None or case.startup.ready:
        return None
    groups = hit.match.re.groupindex
    call = hit["call"] if "call" in groups else "a completion"
    error = hit["error"].strip() if "error" in groups else f"status {hit['status'] or hit['word']}"
    memory = bool(re.search(r"Cannot allocate memory|ENOMEM|\b12\b", error)) and call in ("ibv_create_qp", "ibv_reg_mr", "ibv_create_cq", "ibv_reg_mr_iova2")
    if memory:
        return Found(
            cause=Words(
                f"{call} could not lock memory for the InfiniBand card ({error}): the limit on locked memory of this process or container is too small. Network cables and GPUs are not at fault.",
                f"{call} 无法为 InfiniBand 网卡锁定内存（{error}）：该进程或容器的 memlock 上限太小。与网线和 GPU 无关。",
            ),
            evidence=[hit.quote()],
            fixes=[
                Fix(Words("lift the limit in the container", "在容器中放开上限"), "docker run --ulimit memlock=-1:-1"),
                Fix(Words("or in the unit", "或在服务单元中"), "LimitMEMLOCK=infinity"),
            ],
            verify=Words("`ulimit -l` where the server runs prints `unlimited`", "在服务运行处执行 `ulimit -l` 输出 `unlimited`"),
            confidence=0.9,
            title=Words("InfiniBand cannot lock memory", "InfiniBand 无法锁定内存"),
        )
    used = hit["gid"] if "gid" in groups else ""
    given = case.log.first(SET)
    used = used or (given["index"] if given else case.context.text("env.NCCL_IB_GID_INDEX"))
    table = case.log.first(GIDS)
    right = (table["index"] or table["number"]) if table else ""
    with_gid = Words(f" with GID index {used}" if used else "", f"（GID 索引 {used}）" if used else "")
    fixes = []
    if right and right != used:
        fixes.append(
            Fix(
                Words(f"use GID {right}, the RoCE v2 entry with an IPv4 address, on all nodes", f"在所有节点使用 GID {right}（带 IPv4 地址的 RoCE v2 项）"),
                f"export NCCL_IB_GID_INDEX={right}",
            )
        )
    else:
        fixes.append(
            Fix(
                Words(
                    "choose the index of the RoCE v2 entry with the routable IPv4 address, the same on all nodes",
                    "选用带可路由 IPv4 地址的 RoCE v2 项的索引，所有节点一致",
                ),
                "export NCCL_IB_GID_INDEX=$(show_gids | awk '$5 ~ /[0-9]+\\./ && /v2/ {print $3; exit}')",
            )
        )
    fixes.append(
        Fix(Words("to confirm: the same start over TCP must work (slower)", "用于确认：同样的启动改走 TCP 应能成功（较慢）"), "export NCCL_IB_DISABLE=1")
    )
    return Found(
        cause=Words(
            f"InfiniBand/RoCE between the nodes does not carry data{with_gid.en}: {call} ended with {error or 'an error'}. Usually the GID index names an entry that is not routed"
            " (link-local, RoCE v1); switches that drop RoCE look the same.",
            f"节点间的 InfiniBand/RoCE 无法传输数据{with_gid.zh}：{call} 返回 {error or '错误'}。通常是 GID 索引指向不可路由的条目（链路本地、RoCE v1）；交换机丢弃 RoCE 时表现相同。",
        ),
        evidence=[hit.quote(), *([table.quote()] if table else [])],
        fixes=fixes,
        verify=Words(
            "with NCCL_IB_DISABLE=1 the start passes `Init COMPLETE`: the fault is in InfiniBand; after the repair it passes without, and NCCL says `via NET/IB`",
            "设置 NCCL_IB_DISABLE=1 后启动越过 `Init COMPLETE`，说明故障在 InfiniBand；修复后去掉该变量也能通过，且 NCCL 打印 `via NET/IB`",
        ),
        confidence=0.9 if "call" in groups else 0.8,
        explains=("D11", "D17", "D4", "D5"),
    )


RULES: Final = (
    Rule(
        id="D15",
        title=Words("InfiniBand between the nodes fails", "节点间 InfiniBand 失败"),
        symptoms=Words("`ibv_modify_qp failed`, completions with error 12, GID", "`ibv_modify_qp failed`、completion 错误 12、GID"),
        why=Words("the GID index is not routed, memory cannot be locked, or switches drop RoCE", "GID 索引不可路由、内存无法锁定，或交换机丢弃 RoCE"),
        needs=Words("`show_gids` of each node", "各节点的 `show_gids`"),
        remedy=Words("NCCL_IB_GID_INDEX; NCCL_IB_DISABLE=1 to confirm", "NCCL_IB_GID_INDEX；用 NCCL_IB_DISABLE=1 确认"),
        check=Words("the start passes over InfiniBand", "走 InfiniBand 能够启动"),
        judge=queue_pairs_fail,
        sees=(VERB, COMPLETION, GIDS, SET),
    ),
)
