"""Ranks that wait for one that does not come: a collective that times out (D11), a dead worker behind the others' messages (D17)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit, Line
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Abstention, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import split_of
from headway.doctor.rules.quoted import said
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

WATCHDOG: Final = sight(
    "Watchdog caught collective operation timeout",
    pattern=r"(?:\[Rank (?P<rank>\d+)\] )?Watchdog caught collective operation timeout: \w+\((?:SeqNum=(?P<number>\d+), ?)?(?:OpType=(?P<what>\w+))?.*?"
    r"(?:Timeout\(ms\)=(?P<limit>\d+)\) )?ran for (?P<ran>\d+) milliseconds",
    series=True,
)
GLOO_WAIT: Final = sight("Timed out waiting", pattern=r"Timed out waiting (?P<limit>\d+)ms for (?P<what>recv|send) operation")
TOOK: Final = sight(
    "Time spent downloading weights",
    "torch.compile takes",
    "torch.compile took",
    "Loading weights took",
    "Graph capturing finished",
    pattern=r"(?P<what>Time spent downloading weights|torch\.compile t(?:akes|ook)|Loading weights took|Graph capturing finished in)(?:.*?[ :])(?P<seconds>\d+(?:\.\d+)?) ?s(?:ec|\b)",
)
NCCL_TIMEOUT: Final = sight("NCCL_TIMEOUT=", pattern=r"(?<![A-Z_])NCCL_TIMEOUT=(?P<value>\d+)")
NO_BLOCK: Final = sight(
    "broadcast block found",
    "No available block found",
    pattern=r"No available (?:shared memory broadcast )?block found in (?P<seconds>\d+) second",
    series=True,
)
DIED: Final = sight(
    "died unexpectedly",
    "Worker proc ",
    "terminated by signal",
    "exited with code",
    "exit code",
    "Segmentation fault",
    "core dumped",
    pattern=r"(?P<who>\b\w{0,40}(?:[Ww]orker|[Rr]ank)[^:,]{0,60}?),? (?:died|was terminated|terminated by signal|exited with code|exit code)"
    r"|Segmentation fault|core dumped",
)
_RANK: Final = re.compile(r"\[?[Rr]ank ?(?P<a>\d+)|_TP(?P<b>\d+)|rank=(?P<c>\d+)")
_ACTIVITY: Final = {
    "Time spent downloading weights": Words("downloading weights", "下载权重"),
    "torch.compile takes": Words("compiling", "编译"),
    "torch.compile took": Words("compiling", "编译"),
    "Loading weights took": Words("reading weights", "读取权重"),
    "Graph capturing finished in": Words("capturing graphs", "捕获计算图"),
}


def rank_of(line: Line) -> int | None:
    """The rank that printed a line, as its process prefix says."""
    found = _RANK.search(line.process)
    return int(next(group for group in found.groups() if group)) if found else None


def collective_timed_out(case: Case) -> Found | None:
    hits = case.log.hits(WATCHDOG)
    if hits:
        return _watchdog(case, hits)
    gloo = case.log.first(GLOO_WAIT)
    if gloo is None or case.startup.ready:
        return None
    seconds = int(gloo["limit"]) / 1000
    return _late(case, gloo, seconds, Words(f"Gloo {gloo['what']}", f"Gloo {gloo['what']}"), [], None)


def _watchdog(case: Case, hits: tuple[Hit, ...]) -> Found:
    first = hits[0]
    seconds = int(first["limit"] or round(int(first["ran"]) / 1000) * 1000) / 1000
    waiting = sorted({int(hit["rank"]) for hit in hits if hit["rank"]} or {rank for hit in hits if (rank := rank_of(hit.line)) is not None})
    world = split_of(case).world
    missing = [rank for rank in range(world) if rank not in waiting] if world > 1 and waiting else []
    what = first["what"] or "collective"
    number = Words(f"{what} {first['number']}" if first["number"] else what, f"第 {first['number']} 次 {what}" if first["number"] else what)
    return _late(case, first, seconds, number, waiting, missing)


def _late(case: Case, first: Hit, seconds: float, what: Words, waiting: list[int], missing: list[int] | None) -> Found:
    busy = _busiest(case, missing, seconds)
    longest = busy.number("seconds") if busy else 0.0
    names = ", ".join(map(str, missing)) if missing else ""
    who = Words(f"rank {names} never came" if names else "one rank never came", f"rank {names} 一直没有到达" if names else "有一个 rank 一直没有到达")
    waited = Words(
        f"Rank{'s' if len(waiting) > 1 else ''} {', '.join(map(str, waiting))} waited {seconds:g} s" if waiting else f"The ranks waited {seconds:g} s",
        f"rank {', '.join(map(str, waiting))} 等待了 {seconds:g} 秒" if waiting else f"各 rank 等待了 {seconds:g} 秒",
    )
    reason = Words("it was busy (download, compile) or dead: its own lines tell", "它可能在忙（下载、编译）或已退出，需看它自己的日志")
    if busy:
        activity = _ACTIVITY[busy["what"]]
        reason = Words(f"it was {activity.en} for {longest:g} s, longer than the limit", f"它在{activity.zh}，用了 {longest:g} 秒，超过该时限")
    ignored = case.context.has("env.NCCL_TIMEOUT") or case.log.sees(NCCL_TIMEOUT)
    note = (
        Words(" NCCL_TIMEOUT, which is set here, is no variable of NCCL and changes nothing.", "这里设置的 NCCL_TIMEOUT 并不是 NCCL 的变量，不起任何作用。")
        if ignored
        else Words("", "")
    )
    quotes = [first.quote(), *([busy.quote()] if busy else [])]
    if case.context.has("env.NCCL_TIMEOUT"):
        quotes.append(case.context.quote("env.NCCL_TIMEOUT", f"NCCL_TIMEOUT={case.context.text('env.NCCL_TIMEOUT')}"))
    return Found(
        cause=Words(
            f"{waited.en} at {what.en} and gave up: {who.en}, {reason.en}.{note.en} The aborts after it are consequences.",
            f"{waited.zh}（{what.zh}）后放弃：{who.zh}，{reason.zh}。{note.zh}其后的中止都是后果。",
        ),
        evidence=quotes,
        fixes=_shorter_wait(case, busy, longest, seconds),
        verify=Words(
            f"the slowest rank's log{f' (rank {names})' if names else ''} reaches the same step within {seconds:g} s of the others, and `Watchdog caught` is gone",
            f"最慢 rank{f'（rank {names}）' if names else ''}的日志与其他 rank 相差不超过 {seconds:g} 秒，且不再出现 `Watchdog caught`",
        ),
        confidence=0.95 if busy else 0.75,
    )


def _busiest(case: Case, missing: list[int] | None, limit: float) -> Hit | None:
    """What took longest, of the ranks that did not come; only what can have filled the wait."""
    hits = [hit for hit in case.log.hits(TOOK) if hit.number("seconds") >= 0.5 * limit]
    own = [hit for hit in hits if missing and rank_of(hit.line) in missing]
    return max(own or hits, key=lambda hit: hit.number("seconds"), default=None)


def _shorter_wait(case: Case, busy: Hit | None, longest: float, seconds: float) -> list[Fix]:
    fixes = []
    model = case.launch.model
    downloads = busy is not None and "download" in busy["what"]
    if downloads and "/" in model and not model.startswith("/"):
        fixes.append(Fix(Words("download the model on every node before the start", "启动前在每个节点预先下载模型"), f"hf download {model}"))
    elif busy is not None and "compile" in busy["what"]:
        fixes.append(Fix(Words("keep the compile cache between starts", "在重启之间保留编译缓存"), "VLLM_CACHE_ROOT=/var/cache/vllm"))
    allowed = int(-(-max(2 * longest, 3 * seconds) // 300) * 300)
    fixes.append(
        Fix(
            Words(f"give the group a limit above that ({allowed} s)", f"把进程组的时限设到其上（{allowed} 秒）"),
            f"--distributed-timeout-seconds {allowed}",
        )
    )
    if busy is None:
        fixes.insert(
            0,
            Fix(
                Words(
                    "see what the rank that did not come does, and pre-download what it fetches; record the last collectives",
                    "查看未到达的 rank 在做什么，预先下载它要取的内容；并记录最近的集合操作",
                ),
                "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            ),
        )
    return fixes


def dead_worker(case: Case) -> Found | Abstention | None:
    """The waiting message is no cause; an exception or an exit of another process before or between is."""
    waits = case.log.hits(NO_BLOCK)
    if not waits:
        return None
    first, last = waits[0], waits[-1]
    progress = case.startup.hit
    if progress is not None and progress.line.number > last.line.number:
        return None  # it passed
    speaker = first.line.process
    failed = next((hit for hit in case.exceptions.first if hit.line.process != speaker and hit.line.number < last.line.number and _is_worker(hit.line)), None)
    died = next((hit for hit in case.log.hits(DIED) if hit.line.number < last.line.number or failed is None), None)
    total = len(waits) * int(first["seconds"])
    evidence = failed or died
    gone = _defunct(case)
    if evidence is None and gone is not None:
        return _gone(first, len(waits), *gone)
    if evidence is None:
        if case.log.count(NO_BLOCK) < 3 and case.context.number("host.log_age_s") is None:
            return None
        return Abstention(
            Words(
                f"line {first.line.number} says that the ranks waited {total} s for one that does not answer; which one, only the last line of each rank's log and"
                " `py-spy dump --pid PID` of each worker tell (long compiles print the same and then pass)",
                f"第 {first.line.number} 行表明各 rank 已等待 {total} 秒，有一个不应答；是哪一个，需要每个 rank 日志的最后一行以及对各 worker 执行 `py-spy dump --pid PID`"
                "（长时间编译也会打印同样内容，随后通过）",
            ),
            [first.quote()],
        )
    rank = rank_of(evidence.line)
    name = evidence.line.process or (evidence["who"] if evidence is died else "") or "a worker"
    shown = said(evidence)
    return Found(
        cause=Words(
            f"{name} is gone: line {evidence.line.number} is its last word ({shown}). The other ranks wait for its answer and say `No available shared memory broadcast"
            f" block` every {first['seconds']} s ({len(waits)} times); that message is not the fault and shared memory is not full.",
            f"{name} 已退出：第 {evidence.line.number} 行是它的最后输出（{shown}）。其余 rank 在等它应答，每 {first['seconds']} 秒打印一次 `No available shared memory broadcast"
            f" block`（共 {len(waits)} 次）；该消息本身不是故障，共享内存也没有满。",
        ),
        evidence=[evidence.quote(), first.quote()],
        fixes=[
            Fix(
                Words(
                    f"repair what line {evidence.line.number} says of {name}, then restart the server; with it alone in view",
                    f"修复第 {evidence.line.number} 行所示 {name} 的错误，然后重启服务；单独查看该进程",
                ),
                f"grep -n '{_pattern(rank, name)}' {evidence.line.source} | tail -50",
            ),
            Fix(
                Words("if its error stands at an accidental place: make GPU calls synchronous once", "若其报错位置不可靠：临时让 GPU 调用同步"),
                "CUDA_LAUNCH_BLOCKING=1",
            ),
        ],
        verify=Words(
            "after the restart every rank's last line is as recent as the others' and `No available shared memory broadcast block` no longer repeats",
            "重启后每个 rank 的最后一行时间相近，且 `No available shared memory broadcast block` 不再重复出现",
        ),
        confidence=0.8,
        at=evidence.line.number,
    )


def _defunct(case: Case) -> tuple[str, Quote] | None:
    """A worker among the context's processes that has ended."""
    for index, process in enumerate(case.context.items("host.processes")):
        text = " ".join(map(str, process.values())) if isinstance(process, dict) else str(process)
        if re.search(r"[Ww]orker|VLLM::", text) and re.search(r"defunct|zombie|\bexited\b|\bdead\b|(?:^|\s)Z\w?(?:\s|$)", text):
            name = re.search(r"(?:VLLM::)?\w*[Ww]orker\w*", text)
            return name[0] if name else text[:60], case.context.quote(f"host.processes.{index}", text)
    return None


def _gone(first: Hit, times: int, name: str, quote: Quote) -> Found:
    return Found(
        cause=Words(
            f"{name} has ended, and the other ranks wait for it: `No available shared memory broadcast block` came {times} times. That message is not the fault, and shared memory is not full.",
            f"{name} 已经结束，其余 rank 在等它：`No available shared memory broadcast block` 出现了 {times} 次。该消息本身不是故障，共享内存也没有满。",
        ),
        evidence=[quote, first.quote()],
        fixes=[
            Fix(
                Words(
                    f"find the last lines of {name} and what ended it, repair that, then restart the server",
                    f"找到 {name} 的最后几行及其退出原因，修复后重启服务",
                ),
                "sudo dmesg -T | grep -iE 'killed process|segfault|xid' | tail",
            ),
        ],
        verify=Words("after the restart all workers run, and the message no longer repeats", "重启后所有 worker 都在运行，且该消息不再重复"),
        confidence=0.8,
    )


def _is_worker(line: Line) -> bool:
    return not line.process.startswith(("APIServer", "EngineCore"))


def _pattern(rank: int | None, name: str) -> str:
    return f"TP{rank}" if rank is not None and "TP" in name else name.split(" ")[0]


RULES: Final = (
    Rule(
        id="D11",
        title=Words("A collective operation timed out", "集合通信超时"),
        symptoms=Words("`Watchdog caught collective operation timeout`", "`Watchdog caught collective operation timeout`"),
        why=Words("one rank is busy (download, compile) or dead while the others wait", "一个 rank 在忙（下载、编译）或已退出，其他 rank 在等它"),
        needs=Words("the log of the slowest rank", "最慢 rank 的日志"),
        remedy=Words("remove the wait (download before), --distributed-timeout-seconds", "消除等待（预先下载），--distributed-timeout-seconds"),
        check=Words("no watchdog line; the slowest rank keeps up", "不再有 watchdog 行，最慢的 rank 能跟上"),
        judge=collective_timed_out,
        sees=(WATCHDOG, GLOO_WAIT, TOOK, NCCL_TIMEOUT),
    ),
    Rule(
        id="D17",
        title=Words("A worker is dead and the others wait for it", "一个 worker 已退出，其他进程在等它"),
        symptoms=Words(
            "`No available shared memory broadcast block found in 60 seconds`, again and again",
            "`No available shared memory broadcast block found in 60 seconds` 反复出现",
        ),
        why=Words("one rank stopped earlier with an error of its own", "某个 rank 先前因自身错误停止"),
        needs=Words("the last line of each rank", "每个 rank 的最后一行"),
        remedy=Words("repair that rank's error", "修复该 rank 的错误"),
        check=Words("last line of each rank", "每个 rank 的最后一行"),
        judge=dead_worker,
        sees=(NO_BLOCK, DIED),
    ),
)
