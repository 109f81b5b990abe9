"""Nodes that were compared before a launch, or whose collected facts are compared here, and are not alike (D21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headway.distributed.disagreement import Disagreement
from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.distributed.node_words import SAID, fix_of, sentence_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

REFUSED: Final = sight("The nodes cannot start together: ", pattern=r"The nodes cannot start together: (?P<what>.{1,600}?)\. To fix it: (?P<fix>.{1,300}?)(?: \| |$)")
NO_MASTER: Final = sight(
    "cannot reach node 0 at ", pattern=r"node (?P<node>\d+) cannot reach node 0 at (?P<place>\S+) within (?P<seconds>[\d.]+) s: (?P<why>.{1,120}?)\. "
)
_CHECK: Final = Words(
    "`headway doctor dist --nodes a.json,b.json` on facts collected again names no difference",
    "重新收集后执行 `headway doctor dist --nodes a.json,b.json`，不再列出差异",
)
_SHOWN: Final = 6


def nodes_disagree(case: Case) -> Found | None:
    if nodes := case.context.items("nodes"):
        from headway.distributed.node_facts import facts_from  # pydantic and psutil, which logs do not need
        from headway.distributed.preflight import compare

        try:
            found = compare([facts_from(node) for node in nodes])
        except ValueError:  # no facts of nodes; `headway doctor dist` says what is wrong with a file of its own
            return None
        return _compared(case, found) if found else None
    refused = case.log.first(REFUSED)
    if refused is not None:
        return _told(refused)
    unreached = case.log.first(NO_MASTER)
    return None if unreached is None or case.startup.ready else _unreached(unreached)


def _compared(case: Case, found: Sequence[Disagreement]) -> Found:
    """All in one finding: the first that refuses a start is the cause."""
    first = found[0]
    others = len(found) - 1
    more = Words(f" {others} more below." if others else "", f"另有 {others} 项见下。" if others else "")
    said = sentence_of(first)
    return Found(
        title=SAID[first.reason].title,
        cause=Words(f"{said.en[0].upper()}{said.en[1:]}.{more.en}", f"{said.zh}。{more.zh}"),
        evidence=[case.context.quote("nodes", one.sentence) for one in found],
        fixes=[Fix(fix_of(one)) for one in found[:_SHOWN]],
        verify=_CHECK,
        confidence=STATED if first.refuses else 0.4,
        weight="fatal" if first.refuses else "remark",
    )


def _told(hit: Hit) -> Found:
    what = hit["what"]
    return Found(
        cause=Words(f"Headway compared the nodes before it started them, and refused: {what}", f"Headway 在启动前比较了各节点并拒绝启动：{what}"),
        evidence=[hit.quote()],
        fixes=[
            Fix(Words(hit["fix"], f"按提示处理：{hit['fix']}")),
            Fix(
                Words("collect the facts of each node and see all differences in one table", "收集每个节点的材料，用一张表查看全部差异"),
                "headway doctor dist --collect node.json -- MODEL ...   # on each node\nheadway doctor dist --nodes node-a.json,node-b.json",
            )
        ],
        verify=_CHECK,
        confidence=STATED,
        explains=("D4", "D5", "D11", "D12"),
    )


def _unreached(hit: Hit) -> Found:
    host, _, port = hit["place"].rpartition(":")
    return Found(
        title=Words("Node 0 cannot be reached", "无法连接 node 0"),
        cause=Words(
            f"Node {hit['node']} found nobody at {hit['place']} within {hit['seconds']} s: {hit['why']}. Node 0 was not started, listens elsewhere, or a firewall is between them.",
            f"node {hit['node']} 在 {hit['seconds']} 秒内没有连上 {hit['place']}：{hit['why']}。node 0（编号 0）未启动、监听在别处，或中间有防火墙。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(Words("from that node, see whether the port is open", "在该节点检查端口是否可达"), f"nc -zv {host} {port}"),
            Fix(Words("on the node with number 0, see that it listens there", "在编号为 0 的节点上确认正在监听"), f"ss -ltn | grep :{port}"),
        ],
        verify=Words(f"`nc -zv {host} {port}` from that node connects", f"在该节点执行 `nc -zv {host} {port}` 能连上"),
        confidence=STATED,
        explains=("D4",),
    )


RULES: Final = (
    Rule(
        id="D21",
        title=Words("The nodes of a launch are not alike", "同一次启动的各节点不一致"),
        symptoms=Words("`The nodes cannot start together`, `cannot reach node 0 at`", "`The nodes cannot start together`、`cannot reach node 0 at`"),
        why=Words(
            "another version, model, flag, address or network on one of them would make the others wait or compute something else",
            "某个节点的版本、模型、参数、地址或网络不同，会使其他节点一直等待或算出不同的结果",
        ),
        needs=Words("the facts of each node (`headway doctor dist --collect FILE`)", "每个节点的材料（`headway doctor dist --collect FILE`）"),
        remedy=Words("make them alike in what is named", "使所列各项一致"),
        check=Words("`headway doctor dist --nodes a.json,b.json` names no difference", "`headway doctor dist --nodes a.json,b.json` 不再列出差异"),
        judge=nodes_disagree,
        sees=(REFUSED, NO_MASTER),
    ),
)
