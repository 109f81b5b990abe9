"""Disagreements of nodes in Chinese, and a title for each; the English sentences stand with the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headway.distributed.disagreement import Disagreement
from headway.doctor.words import Words


class Said(NamedTuple):
    """`title` in both languages; `sentence` and `fix` are templates over `subject`, `shown` and `wanted`."""

    title: Words
    sentence: str
    fix: str


SAID: Final[Mapping[str, Said]] = {
    "node_missing": Said(
        Words("A node did not come", "有节点没有加入"), "{subject} 在 {wanted} 秒内没有连到 node 0",
        "在该节点启动，--master-addr 与 --master-port 保持一致；若已在运行，它自己的报错会说明连不上什么。",
    ),
    "node_not_given": Said(
        Words("A node is not known", "缺少节点材料"), "没有 {subject} 的材料，而共有 {wanted} 个节点一起启动", "在该节点用 `headway doctor dist --collect FILE` 收集。"
    ),
    "node_rank_twice": Said(
        Words("Two nodes have one number", "两个节点编号相同"), "两处启动都自称 {subject}：{shown}", "为每个节点设置不同的编号（--node-rank、RANK）。"
    ),
    "key_differs": Said(Words("The cluster key differs", "集群密钥不一致"), "{subject} 带来了另一个 HEADWAY_CLUSTER_KEY", "在所有节点设置相同的 HEADWAY_CLUSTER_KEY。"),
    "key_not_secret": Said(
        Words("There is no cluster key", "没有集群密钥"), "未设置 HEADWAY_CLUSTER_KEY：能访问 {subject} 的任何人都可以加入本次启动",
        "在所有节点把 HEADWAY_CLUSTER_KEY 设为同一段足够长的随机文本，或让该端口只在自己的网络内可达。",
    ),
    "master_differs": Said(
        Words("The nodes meet at different places", "各节点的主节点地址不同"), "各节点寻找 node 0 的位置不同：{shown}", "所有节点使用相同的 --master-addr 与 --master-port。"
    ),
    "version_differs": Said(
        Words("Versions differ between nodes", "节点之间版本不一致"), "{subject} 的版本不同：{shown}", "所有节点使用同一镜像或环境；其中最新的是 {subject} {wanted}。"
    ),
    "model_missing": Said(Words("The model is missing on a node", "有节点缺少模型"), "部分节点没有该模型：{shown}", "把模型文件放到每个节点，或挂载同一个共享目录。"),
    "model_differs": Said(
        Words("The model's files differ", "模型文件不一致"), "模型文件不同（{subject}）：{shown}", "把同一份文件复制到所有节点，并使用相同的 --revision。"
    ),
    "setting_differs": Said(Words("The flags differ", "启动参数不一致"), "{subject} 不同：{shown}", "所有节点使用相同的 {subject}。"),
    "interface_missing": Said(
        Words("The interface does not exist", "指定的网卡不存在"), "{subject} 指定的网卡不存在：{shown}", "改为该节点上存在的网卡，或取消该变量。"
    ),
    "interface_down": Said(
        Words("The interface is down", "指定的网卡未启用"), "{subject} 指定的网卡未启用或没有地址：{shown}", "启用它（`ip link set dev NAME up`），或指定另一个。"
    ),
    "address_not_here": Said(
        Words("The address belongs to no interface", "地址不属于该节点"), "{subject} 不是该节点的地址：{shown}",
        "改为该节点自己的地址；在 node 0 上即 --master-addr，或设置 VLLM_HOST_IP 或 GLOO_SOCKET_IFNAME。",
    ),
    "master_unresolved": Said(
        Words("The master address has no meaning there", "主节点名称无法解析"), "{subject} 在那里无法解析：{shown}", "--master-addr 使用 IP 地址，或让每个节点都能解析该名称。"
    ),
    "no_route": Said(Words("There is no way to node 0", "没有到 node 0 的路由"), "{subject} 不存在：{shown}", "把该节点接入 node 0 所在的网络（`ip route get ADDRESS`）。"),
    "loopback_between_hosts": Said(
        Words("A loopback address between hosts", "跨主机使用了回环地址"), "其他主机无法访问回环地址：{shown}",
        "--master-addr 使用其他节点可达的地址；若名称解析到 127.x，请修正 /etc/hosts。",
    ),
    "unreachable": Said(
        Words("Ports between the nodes are blocked", "节点间端口不通"), "节点之间的连接失败：{shown}",
        "放通节点间的全部 TCP 端口（gloo 与 NCCL 使用系统随机分配的端口，不只是 {wanted}），或用 GLOO_SOCKET_IFNAME 选择连通它们的网卡。",
    ),
    "clock_differs": Said(
        Words("Clocks of the nodes differ", "节点时钟不一致"), "时钟与 node 0 不一致：{shown}", "用 chrony 或 ntpd 同步时钟：日志与时限会跨节点比较。"
    ),
    "shm_small": Said(
        Words("/dev/shm is too small", "/dev/shm 太小"), "/dev/shm 小于 {wanted}：{shown}", "容器启动时加 --shm-size=1g 或 --ipc=host：同一节点的进程以及 NCCL 在其中交换数据。"
    ),
    "cpus_differ": Said(
        Words("The nodes have different CPUs", "节点 CPU 数不同"), "各节点的 CPU 数不同：{shown}", "整体速度取决于最慢的节点；使各节点相同，或让较小的节点承担更少的 rank。"
    ),
    "memory_differs": Said(
        Words("The nodes have different memory", "节点内存不同"), "各节点的内存不同：{shown}", "KV 缓存大小取决于最小的节点；使各节点的上限相同。"
    ),
}  # fmt: skip


def sentence_of(found: Disagreement) -> Words:
    return Words(found.sentence, _filled(SAID[found.reason].sentence, found))


def fix_of(found: Disagreement) -> Words:
    return Words(found.fix, _filled(SAID[found.reason].fix, found))


def _filled(template: str, found: Disagreement) -> str:
    return template.format(subject=found.subject, shown=found.shown, wanted=found.wanted)
