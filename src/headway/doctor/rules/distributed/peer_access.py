"""A start that stops without a word after NCCL's init: peer-to-peer copies that never arrive (D6)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Abstention, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import serve_command, split_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

COMPLETE: Final = sight("Init COMPLETE", pattern=r"(?:rank (?P<rank>\d+) nranks (?P<ranks>\d+).*)?Init COMPLETE")
P2P: Final = sight("via P2P", pattern=r"via P2P/\S+")
OTHER_WAY: Final = sight("via SHM", "via NET", pattern=r"via (?:SHM|NET)/\S+")
NCCL_USED: Final = sight("is using nccl==", pattern=r"is using nccl==(?P<version>[\d.]+)")
TALK: Final = sight(
    "Watchdog caught",
    "broadcast block found",
    "No available block found",
    "NCCL WARN",
    "unhandled system error",
    "Killed process",
    "torch.distributed.D",
    "DistNetworkError",
)
ACS: Final = sight("ACSCtl", pattern=r"ACSCtl:.*SrcValid\+")
_STUCK_SECONDS: Final = 180
_BUSY_PERCENT: Final = 90


def peer_copies_hang(case: Case) -> Found | Abstention | None:
    """Silence proves nothing by itself: the age of the last line and the cards' use do."""
    complete, p2p = case.log.first(COMPLETE), case.log.first(P2P)
    used = case.log.first(NCCL_USED)
    split = split_of(case)
    if (complete is None and used is None) or case.startup.ready or case.log.sees(TALK) or case.exceptions.first or case.exceptions.umbrellas:
        return None
    if p2p is None and case.log.sees(OTHER_WAY):
        return None
    last = complete or used
    assert last is not None
    later = case.startup.hit
    if later is not None and later.line.number > last.line.number and case.startup.reached("weights read"):
        last = later
    age, busy = case.context.number("host.log_age_s"), _busy(case)
    if age is None and not busy:
        if complete is None or p2p is None or case.startup.reached("loading"):
            return None
        return Abstention(
            Words(
                f"the log ends at line {last.line.number} after NCCL's init: the age of that line and `nvidia-smi --query-gpu=utilization.gpu --format=csv` would tell"
                " a hang of peer-to-peer copies (minutes old, all GPUs at 100 %) from a start that goes on",
                f"日志停在第 {last.line.number} 行 NCCL 初始化之后：需要该行的时间距今多久以及 `nvidia-smi --query-gpu=utilization.gpu --format=csv`，"
                "才能区分 P2P 拷贝挂死（已过数分钟、GPU 全部 100 %）与仍在启动",
            ),
            [last.quote()],
        )
    if age is not None and age < _STUCK_SECONDS:
        return None
    if len(busy) < 2:
        return None
    return _found(case, last, p2p, age, busy, split.world)


def _busy(case: Case) -> list[int]:
    """Indexes of cards that are at work."""
    found = []
    for position, card in enumerate(case.context.items("host.gpus")):
        use = card.get("util_percent") if isinstance(card, dict) else None
        if isinstance(use, (int, float)) and use >= _BUSY_PERCENT:
            found.append(position)
    return found


def _found(case: Case, last: Hit, p2p: Hit | None, age: float | None, busy: list[int], world: int) -> Found:
    topology, kernel = case.context.text("host.topology"), case.context.text("host.kernel_cmdline")
    nvlink = bool(re.search(r"\bNV\d+\b", topology))
    iommu = bool(re.search(r"iommu=(?:on|force)|amd_iommu=on|intel_iommu=on", kernel)) and "iommu=pt" not in kernel
    acs = case.log.first(ACS)
    quotes: list[Quote] = [last.quote(), *([p2p.quote()] if p2p else []), *([acs.quote()] if acs else [])]
    quotes += [case.context.quote(path) for path in ("host.log_age_s", "host.topology", "host.kernel_cmdline") if case.context.has(path)]
    quotes += [case.context.quote(f"host.gpus.{index}.util_percent") for index in busy[:2]]
    clues = []
    if topology and not nvlink:
        clues.append(Words(f"no NVLink ({topology})", f"没有 NVLink（{topology}）"))
    if iommu or acs:
        clues.append(Words("IOMMU or ACS is on", "IOMMU 或 ACS 已开启"))
    shown = Words(f" Clues: {', '.join(clue.en for clue in clues)}." if clues else "", f"线索：{'，'.join(clue.zh for clue in clues)}。" if clues else "")
    since = Words(f"for {age:g} s" if age is not None else "since then", f" {age:g} 秒内" if age is not None else "")
    confidence = 0.6 if nvlink else (0.9 if clues and p2p else 0.8 if clues or p2p else 0.7)
    return Found(
        cause=Words(
            f"NCCL's init ended and nothing followed {since.en} while {len(busy)} GPUs are at {_BUSY_PERCENT} % or more: the first exchange between the cards never"
            f" returns, because direct peer copies are started and swallowed on the way (ACS/IOMMU).{shown.en} Loading is not the cause, patience does not help.",
            f"NCCL 初始化完成后{since.zh}再无输出，而 {len(busy)} 张 GPU 的利用率不低于 {_BUSY_PERCENT} %：卡间首次交换永不返回，因为直接的 P2P 拷贝已发出却在途中"
            f"被丢弃（ACS/IOMMU）。{shown.zh}与加载速度无关，继续等也没有用。",
        ),
        evidence=quotes,
        fixes=_fixes(case, kernel, world),
        verify=Words(
            "with NCCL_P2P_DISABLE=1 and --disable-custom-all-reduce the start goes on (slower): confirmed; after the repair an all-reduce test"
            f" (`all_reduce_perf -b 8 -e 128M -g {max(2, len(busy))}`) ends without the variable",
            "设置 NCCL_P2P_DISABLE=1 并加 --disable-custom-all-reduce 后启动能继续（较慢）即可确认；修复后去掉该变量，all-reduce 测试"
            f"（`all_reduce_perf -b 8 -e 128M -g {max(2, len(busy))}`）能够完成",
        ),
        confidence=confidence,
        explains=("D17",),
    )


def _fixes(case: Case, kernel: str, world: int) -> list[Fix]:
    size = f"--tensor-parallel-size {split_of(case).tensor} " if world > 1 else ""
    confirm = Fix(
        Words(
            "confirm without peer copies: the variable switches NCCL's off, the flag the custom all-reduce kernel, which the variable alone leaves on",
            "先关闭点对点拷贝来确认：变量关闭 NCCL 的点对点拷贝，参数关闭自定义 all-reduce（仅设变量时它仍然启用）",
        ),
        f"NCCL_P2P_DISABLE=1 {serve_command(case, size + '--disable-custom-all-reduce')}",
    )
    if "iommu" in kernel:
        changed = re.sub(r"(?<!_)\biommu=\w+", "iommu=pt", kernel)
        changed = changed if "iommu=pt" in changed else f"{changed} iommu=pt"
    else:
        changed = "iommu=pt"
    passthrough = Fix(
        Words(
            "then, for good: IOMMU in pass-through mode (or off in the firmware), kernel command line",
            "随后彻底解决：IOMMU 设为直通模式（或在固件中关闭），内核命令行",
        ),
        f'GRUB_CMDLINE_LINUX="{changed}"',
    )
    acs = Fix(
        Words("and ACS off on the PCIe bridges (or in the firmware)", "并关闭 PCIe 桥上的 ACS（或在固件中关闭）"),
        "for b in $(lspci | grep -i 'PCI bridge' | cut -d' ' -f1); do sudo setpci -s $b ECAP_ACS+6.w=0000; done",
    )
    return [confirm, passthrough, acs]


RULES: Final = (
    Rule(
        id="D6",
        title=Words("Peer-to-peer copies between GPUs hang", "GPU 间 P2P 拷贝挂死"),
        symptoms=Words("`Init COMPLETE`, `via P2P/IPC`, then nothing, all GPUs at 100 %", "`Init COMPLETE`、`via P2P/IPC` 之后无输出，GPU 全部 100 %"),
        why=Words(
            "ACS or IOMMU on PCIe bridges swallows direct copies between cards without NVLink", "没有 NVLink 时，PCIe 桥上的 ACS 或 IOMMU 会吞掉卡间直接拷贝"
        ),
        needs=Words("age of the last line, use of each GPU, topology, kernel command line", "最后一行距今时间、各 GPU 利用率、拓扑、内核命令行"),
        remedy=Words(
            "NCCL_P2P_DISABLE=1 with --disable-custom-all-reduce to confirm, then IOMMU pass-through, ACS off",
            "用 NCCL_P2P_DISABLE=1 加 --disable-custom-all-reduce 确认，然后 IOMMU 直通、关闭 ACS",
        ),
        check=Words("an all-reduce test passes", "all-reduce 测试通过"),
        judge=peer_copies_hang,
        sees=(COMPLETE, P2P, OTHER_WAY, NCCL_USED, TALK, ACS),
    ),
)
