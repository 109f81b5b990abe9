"""The forms of what stands before a message: time stamps, levels, names of processes, containers and places in sources.

Each form is tried at the start of what is left of a line, again and again, until none fits. A group fills the line's
field of that name.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import Final

GLOG_LEVELS: Final = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "D": "DEBUG", "V": "DEBUG"}
LEVELS: Final = {
    **{name: name for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")},
    "WARN": "WARNING",
    "FATAL": "CRITICAL",
    "ERR": "ERROR",
    "EMERG": "CRITICAL",
    "NOTICE": "INFO",
    "TRACE": "DEBUG",
}


@dataclass(frozen=True, slots=True)
class Form:
    """`first`: the characters that it can begin with. `outside`: only before anything that a logger wrote.
    `after_clock`: only behind a time stamp."""

    pattern: re.Pattern[str]
    first: str
    outside: bool = False
    after_clock: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.pattern.groupindex))


_WORD: Final = string.ascii_letters + string.digits + "_"
_LEVEL: Final = r"(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_ISO: Final = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
# what begins behind the name of a container: a logger's own dress, a JSON object, or the indented rest of a record
_MESSAGE_AHEAD: Final = r"(?=\d{4}-\d\d-\d\d[T ]|[\[({]|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|Traceback |\s{2}|[\w.]+(?:Error|Exception): )"

FORMS: Final = (
    # docker compose; some tools indent the name of a container
    Form(re.compile(r" {0,8}(?P<container>[A-Za-z0-9][\w.\-/]{0,79}) +\| ?"), _WORD + " ", outside=True),
    # kubectl --prefix, and starters that name their children: [pod/vllm-0/server], [engine1]
    Form(
        re.compile(r"\[(?:pod/)?(?P<container>(?!(?:c10d|info|error|warn|warning|debug|fatal|notice)\]|rank ?\d)[a-z][\w.\-/]{2,120})\] "),
        "[",
        outside=True,
    ),
    # stern: pod container message. A deployment's pod carries two hashes, a stateful set's a number.
    Form(re.compile(r"(?P<container>[a-z0-9][a-z0-9.\-]{0,200}-[a-z0-9]{6,10}-[a-z0-9]{5} [a-z0-9][a-z0-9\-]{0,62}) "), _WORD, outside=True),
    Form(re.compile(rf"(?P<container>[a-z][a-z0-9.\-]{{0,200}}-\d{{1,4}} [a-z][a-z0-9\-]{{0,62}}) {_MESSAGE_AHEAD}"), _WORD, outside=True),
    # journald, syslog; with -o short-full also the weekday and the year
    Form(
        re.compile(
            r"(?P<clock>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2,5})?) \S+ (?P<container>[\w.@\-/]+)(?:\[\d+\])?: "
        ),
        string.ascii_uppercase,
    ),
    # containerd (CRI), docker --timestamps, generic ISO; then perhaps a level that no more exact form takes
    Form(
        re.compile(
            rf"(?P<clock>{_ISO})(?: (?:stdout|stderr) [FP](?: |$)"
            rf"|[ \t:]*(?:- )?{_LEVEL} ++(?!\d\d-\d\d |[a-z_]\w*(?:\.\w+)+: )|[ \t]?: |[ \t](?:- )?)?"
        ),
        string.digits,
    ),
    # journald -o short-iso: host unit[pid]: behind the time stamp
    Form(re.compile(r"[\w.\-]+ (?P<container>[\w.@\-/]+)\[\d+\]: "), _WORD, after_clock=True),
    # the kernel: [12345.678901], [Sun Nov 29 09:14:03 2026]
    Form(re.compile(r"\[(?P<clock> *\d+\.\d{6}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] "), "["),
    # nginx: [error] 7#7: *1
    Form(re.compile(r"\[(?P<level>debug|info|notice|warn|error|crit|alert|emerg)\] \d+#\d+: (?:\*\d+ )?"), "[", after_clock=True),
    # gunicorn: [7] [INFO]
    Form(re.compile(rf"\[\d+\] \[{_LEVEL}\] "), "[", after_clock=True),
    # (EngineCore pid=7), (Worker_TP0 pid=7), (VllmWorker rank=0 pid=7), (RayWorkerWrapper pid=7, ip=10.0.0.2), (pid=7)
    Form(re.compile(r"\((?P<process>(?:[\w.:\-]+ )?(?:rank=\d+ )?pid=\d+(?:, ip=[\d.a-f:]+)?)\) ?"), "("),
    Form(re.compile(r"\((?P<process>raylet|autoscaler)(?:[ ,][^)]{0,60})?\) ?"), "("),
    Form(re.compile(r"\[(?P<process>rank ?\d+)\]:? ?"), "["),
    # vLLM, Headway: LEVEL 11-29 09:14:03 [core.py:93]; old vLLM without the opening bracket
    Form(re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<clock>\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \[?(?P<place>[^\]\[\s]+)\] ?"), "DIWEC"),
    # SGLang: [2026-11-29 09:14:03 TP0]; gunicorn with a zone
    Form(re.compile(r"\[(?P<clock>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?: [+-]\d{4})?(?: (?P<process>[A-Z]{2}\d+(?: [A-Z]{2}\d+)*))?\] "), "["),
    # python's basic format and uvicorn
    Form(re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):? +(?P<place>[a-z_][\w]*(?:\.\w+)+): "), "DIWEC"),
    Form(re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): {2,}"), "DIWEC"),
    Form(re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?=[^\s\d\-])"), "DIWEC"),
    # Ray: worker.py:1852 --
    Form(re.compile(r"(?P<place>[\w/]+\.(?:py|cc):\d+) -- "), _WORD, after_clock=True),
    # glog, torch C++: [W1129 09:14:03.123456789 file.cpp:12], W1129 09:14:03.123 12 file.py:7], [W file.cpp:12]
    Form(re.compile(r"\[?(?P<glog>[IWEF])\d{4} (?P<clock>\d\d:\d\d:\d\d\.\d+) +(?:\d+ )?(?P<place>[\w./\-]+:\d+)\] "), "[IWEF"),
    Form(re.compile(r"\[(?P<glog>[IWEF]) (?P<place>[\w./\-]+:\d+)\] "), "["),
    # llama.cpp with time stamps: 0.00.000.121 I
    Form(re.compile(r"(?P<clock>\d{1,4}\.\d\d\.\d{3}\.\d{3}) (?P<glog>[IWED]) "), string.digits),
    # NCCL: host:pid:tid [0] NCCL INFO, host:pid:tid [1] misc/shmutils.cc:87 NCCL WARN
    Form(re.compile(r"(?P<process>[\w.\-]+:\d+:\d+) \[\d+\] (?=(?:[\w./\-]+:\d+ )?NCCL )"), _WORD),
    # [TensorRT-LLM][ERROR], [11/29/2026-09:14:03] [TRT-LLM] [E]
    Form(re.compile(r"\[(?P<clock>\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] "), "["),
    Form(re.compile(r"\[(?:TensorRT-LLM|TRT-LLM)\](?: ?\[(?:(?P<level>DEBUG|INFO|WARNING|ERROR)|(?P<glog>[IWEVDF]))\])? ?"), "["),
)
_FIRST: Final = set("".join(form.first for form in FORMS))
BY_FIRST: Final = {first: tuple(form for form in FORMS if first in form.first) for first in _FIRST}
