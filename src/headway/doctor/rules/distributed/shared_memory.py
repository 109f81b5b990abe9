"""/dev/shm is too small for the messages between processes (D7)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.exceptions import FAILED_PROCESSES
from headway.doctor.facts.memory import SIZE
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import in_kubernetes
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SEGMENT: Final = sight(
    "/dev/shm/nccl-",
    "/dev/shm/",
    "creating shared memory segment",
    pattern=r"(?:failed to extend|[Ee]rror while creating shared memory segment|Failed to create shared memory segment|unable to (?:create|open|resize) shared memory)"
    r"\D{0,24}(?P<file>/dev/shm/[\w.\-]+)(?:\D{0,24}?(?P<bytes>\d{4,}))?",
)
FALLOCATE: Final = sight(
    "posix_fallocate failed",
    "posix_fallocate",
    "No space left on device",
    pattern=r"posix_fallocate failed ?: No space left|\[Errno 28\] No space left on device: '(?P<file>/dev/shm/[^']*|/?psm_\w+|/?torch_\w+)'"
    r"|(?:unable to (?:write|allocate shared memory)|unable to mmap).*(?:/torch_|shared memory|shm).*No space left",
)
BUS_ERROR: Final = sight(
    "Bus error",
    "SIGBUS",
    "Signal 7",
    "signal 7",
    pattern=r"Bus error|SIGBUS|(?:killed by|died (?:with|from)|[Tt]erminated (?:by|with)|received|exit(?:ed)? (?:with|on)) [Ss]ignal:? 7\b|insufficient shared memory",
)
SIZE_OF_SHM: Final = sight("/dev/shm", pattern=rf"^(?:shm|tmpfs)\s+(?P<size>[\d.]+[KMG]?)\s+\S+\s+\S+\s+\S+\s+/dev/shm|/dev/shm has only (?P<only>{SIZE})")
_ENOUGH_MIB: Final = 1024.0


def shared_memory_too_small(case: Case) -> Found | None:
    stated = case.log.first(SEGMENT, FALLOCATE)
    limit = case.context.number("host.shm_mib")
    if stated is not None:
        return _found(case, stated, limit, STATED)
    codes = {name: code for name, code in case.exceptions.codes.items() if code == -7}
    hit = case.log.first(BUS_ERROR)
    if hit is None and not codes:
        return None
    if limit is not None and limit > _ENOUGH_MIB:
        confidence = 0.4
    else:
        confidence = 0.9 if limit is not None else 0.75
    if hit is not None:
        return _found(case, hit, limit, confidence)
    failed = case.log.first(FAILED_PROCESSES)
    return None if failed is None else _found(case, failed, limit, confidence)


def _found(case: Case, hit: Hit, limit: float | None, confidence: float) -> Found:
    asked = int(hit["bytes"]) / 2**20 if "bytes" in hit.match.re.groupindex and hit["bytes"] else None
    size = case.log.first(SIZE_OF_SHM)
    there = Words("", "")
    quotes: list[Quote] = [hit.quote()]
    if limit is not None:
        there = Words(f" /dev/shm has {limit:g} MiB here (64 MiB is what containers get).", f"此处 /dev/shm 为 {limit:g} MiB（容器默认 64 MiB）。")
        quotes.append(case.context.quote("host.shm_mib"))
    elif size is not None:
        shown = size["size"] or size["only"]
        there = Words(f" /dev/shm has {shown} here.", f"此处 /dev/shm 为 {shown}。")
        quotes.append(size.quote())
    else:
        there = Words(" Containers get 64 MiB unless told otherwise.", "容器默认只有 64 MiB。")
    what = Words("A process died of a bus error while it wrote to shared memory", "某进程写共享内存时因总线错误退出")
    if "file" in hit.match.re.groupindex and hit["file"]:
        piece = f"{asked:.1f} MiB" if asked else "its segment"
        piece_zh = f" {asked:.1f} MiB 的" if asked else ""
        what = Words(f"The segment {hit['file']} could not get {piece} in /dev/shm", f"在 /dev/shm 中无法创建{piece_zh}共享内存段 {hit['file']}")
    elif "fallocate" in hit.line.text:
        what = Words("A segment in /dev/shm could not be reserved", "无法在 /dev/shm 中预留共享内存段")
    return Found(
        cause=Words(
            f"{what.en}: shared memory is full, through which the ranks of one host talk.{there.en} The disk is not involved, and the system errors of NCCL"
            " after it are consequences.",
            f"{what.zh}：同机各 rank 通信所用的共享内存已满。{there.zh}与磁盘无关，之后 NCCL 的 system error 只是后果。",
        ),
        evidence=quotes,
        fixes=_fixes(case),
        verify=Words(
            "`df -h /dev/shm` inside the container shows 8.0G or more, and the next start passes `Init COMPLETE`",
            "在容器内执行 `df -h /dev/shm` 显示不小于 8.0G，且下次启动越过 `Init COMPLETE`",
        ),
        confidence=confidence,
        explains=("D5", "D6", "D10", "D11", "D17", "L14", "L18"),
    )


def _fixes(case: Case) -> list[Fix]:
    docker = Fix(Words("start the container with more shared memory", "启动容器时加大共享内存"), "--shm-size 8g")
    host = Fix(Words("or share that of the host", "或使用主机的共享内存"), "--ipc=host")
    pod = Fix(
        Words("Kubernetes: a memory-backed volume at /dev/shm", "Kubernetes：在 /dev/shm 挂载内存卷"),
        "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]  volumeMounts: [{name: shm, mountPath: /dev/shm}]",
    )
    bare = Fix(Words("outside a container: enlarge the mount", "不在容器中：扩大挂载"), "mount -o remount,size=8G /dev/shm")
    if in_kubernetes(case):
        return [pod, docker, host]
    if case.context.get("host.in_container") is False:
        return [bare, docker, host]
    return [docker, host, pod]


RULES: Final = (
    Rule(
        id="D7",
        title=Words("/dev/shm is too small", "/dev/shm 太小"),
        symptoms=Words(
            "`Error while creating shared memory segment /dev/shm/nccl-`, `posix_fallocate failed`, a bus error, exit code -7",
            "`Error while creating shared memory segment /dev/shm/nccl-`、`posix_fallocate failed`、总线错误、退出码 -7",
        ),
        why=Words("processes of one host exchange data through shared memory; containers get 64 MiB", "同机进程通过共享内存交换数据，而容器默认只有 64 MiB"),
        needs=Words("the size of /dev/shm where the server runs", "服务运行处 /dev/shm 的大小"),
        remedy=Words("--shm-size 8g, --ipc=host, or a memory-backed volume", "--shm-size 8g、--ipc=host 或内存卷"),
        check=Words("`df /dev/shm`", "`df /dev/shm`"),
        judge=shared_memory_too_small,
        sees=(SEGMENT, FALLOCATE, BUS_ERROR, SIZE_OF_SHM),
    ),
)
