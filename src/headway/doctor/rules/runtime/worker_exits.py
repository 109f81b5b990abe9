"""Worker processes that do not stay: they cannot run at all (R32), or a device fault ends them (R33)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.masking import mask
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.quoted import said
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import deployment
from headway.doctor.rules.runtime.statement import called
from headway.doctor.rules.runtime.unknown import fields_of
from headway.doctor.words import Words

EXITED: Final = sight(
    "runtime_process_exited",
    "runtime_process_stopped",
    "runtime_process_recycled",
    "runtime process exited",
    "worker process exited",
    "worker process ended",
    "worker stopped",
    "worker died",
    "exit code 3",
    "exiting with code 3",
    "runtime_process_restart",
    "model runtime process",
    "worker exited",
    "process ended ",
    "exited 3 times",
    pattern=r"runtime_process_(?:exited|stopped|restart\w*|recycled)|model runtime process (?P<label>\S+) stopped: (?P<how>.*?)(?:; it starts again|$)|(?:runtime|worker) process (?:exited|ended)|worker (?:exited|died|stopped)|exit(?:ing|ed)? (?:with )?(?:exit )?code (?P<own>3)\b|its process ended (?P<times>\d+) times before the model was ready: (?P<last>.*)|exited \d+ times",
    series=True,
)
CANNOT_RUN: Final = sight(
    "cannot be run",
    "executable file not found",
    "command not found",
    "runtime command",
    "runtime_spawn_failed",
    "runtime_process_failed",
    "runtime_process_start_failed",
    "exec format error",
    "failed to start runtime",
    "failed to start worker",
    "cannot start worker",
    "could not be started",
    "fork/exec ",
    "VLLM_SRUN_COMMAND",
    ": not found",
    "No module named 'vllm_srun",
    "No module named vllm_srun",
    pattern=r"(?P<command>\S{1,200}?):? (?:cannot be run|command not found)(?:: (?P<why>.*))?|(?:exec: )?\"?(?P<exe>[\w./\-]{1,200})\"?: executable file not found|\bsh: (?:\d+: )?(?P<shell>[\w./\-]+): (?:not found|No such file|Permission denied)|fork/exec \S{1,200}: |worker could not be started|exec (?P<format>\S{1,200}): exec format error|runtime_(?:process_start|start)_failed|runtime_spawn_failed|runtime_process_failed|(?:failed to|cannot) start (?:runtime|worker)"
    r"|VLLM_SRUN_COMMAND.*(?:not found|cannot|invalid|No such file)|No module named '?(?P<module>vllm_srun[\w.]*)",
)
SOCKET: Final = sight(
    "socket",
    ".sock",
    "AF_UNIX",
    pattern=r"^(?>.*?(?:socket (?:path|folder|directory)|\.sock)).*?(?:too long|(?:is )?not (?:private|owned|writable)|permission|Permission denied|symlink|mode 0?\d{3,4}|AF_UNIX path too long)|AF_UNIX path too long",
)
NO_MODULE: Final = sight(
    "No module named", "ImportError: ", pattern=r"(?:ModuleNotFoundError: )?No module named '(?P<module>[\w.]+)'|ImportError: (?P<what>.*)"
)
_DEVICE_FAULT: Final = 3
_NO_COMMAND: Final = {126: "the command may not be executed", 127: "there is no such command"}
_NO_COMMAND_ZH: Final = {126: "该命令不可执行", 127: "没有该命令"}
CODE: Final = re.compile(r"(?:exit[_ ]?(?:code|status)[ =:]+|exited with (?:code )?|ended with exit code |code=)(?P<code>-?\d+)|exit(?:ing)? (?:with )?code (?P<own>-?\d+)")
DEVICE_FAULT: Final = sight(
    "CUDA error",
    "HIP error",
    "device-side assert",
    "illegal memory access",
    "Memory access fault by GPU",
    "hipErrorIllegalAddress",
    "cudaErrorIllegalAddress",
    "device fault",
    "ECC error",
    "Xid",
    "launch failure",
    pattern=r"(?P<what>(?:CUDA|HIP) error: (?!out of memory)[^;,]*|device-side assert\w*(?: triggered)?|an illegal memory access was encountered|Memory access fault by GPU[^.]*|(?:hip|cuda)ErrorIllegalAddress|device fault\b[^;,]*|uncorrectable ECC error[^.]*)"
    r"|Xid[^:]*: ?(?P<xid>\d+)|Xid \(\S+\): (?P<id>\d+)",
)
# a logger's name is taken off a line, so that the anchor alone tells
IN_RUNTIME: Final = sight("vllm_srun.", "runtime_process_", "runtime_log", "model runtime process", "runtime process exited", "VLLM_SRUN_COMMAND", pattern=r"")
_ANOTHER_CAUSE: Final = re.compile(r"failed to load|did not become ready within")
_FORKED: Final = re.compile(r"exec (?P<exe>/[^\s:]{1,200}):|No such file or directory: '(?P<file>/[^']{1,200})'")
_XID: Final = re.compile(r"Xid(?: \([^)]*\))?:? (?P<number>\d+)")


def worker_does_not_stay(case: Case) -> Found | None:
    cannot, socket = case.log.first(CANNOT_RUN), case.log.first(SOCKET)
    exits = [hit for hit in case.log.hits(EXITED) if _code(hit) != _DEVICE_FAULT and not _ANOTHER_CAUSE.search(hit.line.text)]
    exits = [hit for hit in exits if _code(hit) is not None or "recycled" not in hit.line.text]
    module = case.log.first(NO_MODULE)
    if not case.log.sees(IN_RUNTIME) and not exits and (cannot is None or "SRUN" not in cannot.line.text.upper()):
        return None
    if cannot is None and socket is None and len(exits) < 3 and not any(hit["times"] for hit in exits if "times" in hit.match.re.groupindex):
        return None
    if cannot is None and socket is None and not exits:
        return None
    first = cannot or socket or exits[0]
    assert first is not None
    name = str(fields_of(first).get("deployment", "")) or next((d for hit in exits if (d := str(fields_of(hit).get("deployment", "")) or hit["label"])), "")
    who = called(name or deployment(case, "").name, "the deployment", "该 deployment")
    command = case.context.text("env.VLLM_SRUN_COMMAND")
    code = next((code for hit in exits if (code := _code(hit)) is not None), None)
    times = len(exits)
    count = Words(
        f" ({times} exit{'s' if times > 1 else ''}{f' with code {code}' if code is not None else ''})" if times else "",
        f"（退出 {times} 次{f'，退出码 {code}' if code is not None else ''}）" if times else "",
    )
    quotes: list[Quote] = [first.quote(), *(hit.quote() for hit in exits[:1] if hit is not first)]
    if command:
        quotes.append(case.context.quote("env.VLLM_SRUN_COMMAND", f"VLLM_SRUN_COMMAND={command}"))
    if socket is not None:
        return Found(
            cause=Words(
                f"The worker of {who.en} cannot use its socket{count.en}: `{said(socket)}`. Its folder has to be private (0700, no link) and its path at most 100 characters long.",
                f"{who.zh} 的 worker 无法使用其 socket{count.zh}：`{said(socket)}`。其目录必须私有（0700、非链接），路径不超过 100 个字符。",
            ),
            evidence=quotes,
            fixes=[
                Fix(
                    Words("a short private folder (mode 0700) for sockets, owned by the router's user", "为 socket 使用一个短路径的私有目录（权限 0700），属主为路由器用户"),
                    "install -d -m 0700 /run/vllm-sr && export VLLM_SRUN_DIR=/run/vllm-sr",
                ),
            ],
            verify=Words(
                "`curl -s localhost:8080/startup-status` goes from `starting` to `loading`, and the worker's process stays",
                "`curl -s localhost:8080/startup-status` 从 `starting` 变为 `loading`，且 worker 进程保持运行",
            ),
            confidence=0.85,
            explains=("R11", "R13"),
        )
    missing, exe = module["module"] if module is not None and module["module"] else "", ""
    if cannot is not None and not missing:
        groups = cannot.match.re.groupindex
        forked = _FORKED.search(cannot.line.text)
        exe = (forked["exe"] or forked["file"] if forked else "") or next((value for group in ("command", "exe", "shell", "module") if group in groups and (value := cannot[group])), "") or (
            command.split()[0] if command else ""
        )
        missing = cannot["module"]
        told = said(cannot)
        cause = Words(
            f"The worker of {who.en} cannot be started{count.en}: {f'`{exe}`' if exe else 'its command'} does not run ({told}){f'; VLLM_SRUN_COMMAND is `{command}`' if command else ''}. The model is not at fault.",
            f"{who.zh} 的 worker 无法启动{count.zh}：{f'`{exe}`' if exe else '其命令'} 不能运行（{told}）{f'；VLLM_SRUN_COMMAND 为 `{command}`' if command else ''}。与模型无关。",
        )
        strength = 0.9
    elif missing:
        assert module is not None
        quotes.append(module.quote())
        cause = Words(
            f"The worker of {who.en} ends at once{count.en}: the Python of its command has no `{missing}`{f' (VLLM_SRUN_COMMAND is `{command}`)' if command else ''}. Restarting it cannot help.",
            f"{who.zh} 的 worker 立即退出{count.zh}：其命令所用的 Python 没有 `{missing}`{f'（VLLM_SRUN_COMMAND 为 `{command}`）' if command else ''}。反复重启没有用。",
        )
        strength = 0.9
    else:
        meaning = _NO_COMMAND.get(code or 0, "")
        last = next((hit["last"] for hit in exits if "last" in hit.match.re.groupindex and hit["last"]), "")
        if module is not None and module["what"]:
            last = last or mask(module.line.text)
            quotes.append(module.quote())
        cause = Words(
            f"The worker of {who.en} ends at once, again and again{count.en}{f': {last[:160]}' if last else ''}{f'; {meaning}' if meaning else ''}{f' (VLLM_SRUN_COMMAND is `{command}`)' if command else ''}. Its first lines say why; the router only restarts it.",
            f"{who.zh} 的 worker 反复立即退出{count.zh}{f'：{last[:160]}' if last else ''}{f'；{_NO_COMMAND_ZH[code or 0]}' if meaning else ''}{f'（VLLM_SRUN_COMMAND 为 `{command}`）' if command else ''}。其最初几行会说明原因；路由器只是不断重启它。",
        )
        strength = 0.9 if meaning else 0.7
    package = missing.split(".")[0] if missing else ""
    fixes = []
    if cannot is not None and exe.startswith("/") and "ermission denied" in cannot.line.text:
        fixes.append(Fix(Words(f"let the router's user execute {exe}", f"让路由器的用户可以执行 {exe}"), f"chmod 0755 {exe}"))
    if package and package not in ("vllm_srun", "headway"):
        fixes.append(
            Fix(
                Words(f"install {package} for the Python that runs the worker", f"为运行 worker 的 Python 安装 {package}"),
                f"pip install {package.replace('_', '-')}",
            )
        )
    fixes += [
        Fix(
            Words(
                "correct the command of the worker (an absolute path, as it runs by hand), or unset it for the default",
                "更正 worker 命令（使用能手工运行的绝对路径），或取消设置以使用默认值",
            ),
            "export VLLM_SRUN_COMMAND=$(command -v vllm-srun)",
        ),
        Fix(Words("run it by hand and read its first lines", "手工运行并查看最初几行"), f"{command or 'vllm-srun'} --version"),
    ]
    return Found(
        cause=cause,
        evidence=quotes,
        fixes=fixes,
        verify=Words(
            f"`{command or 'vllm-srun'} --version` prints a version, and the worker's pid stays the same for a minute",
            f"`{command or 'vllm-srun'} --version` 输出版本号，且 worker 的 pid 一分钟内不变",
        ),
        confidence=strength,
        explains=("R11", "R13"),
    )


def _code(hit: Hit) -> int | None:
    for name in ("exit_code", "code", "returncode", "status"):
        value = hit.line.fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    found = CODE.search(hit.line.text)
    return int(found["code"] or found["own"]) if found else None


def device_fault(case: Case) -> Found | None:
    faults = case.log.hits(DEVICE_FAULT)
    exits = [hit for hit in case.log.hits(EXITED) if _code(hit) == _DEVICE_FAULT]
    exits = [hit for hit in exits if not hit["own"]] or exits  # the runtime announces what the router then sees
    if not case.log.sees(IN_RUNTIME) or not (faults or exits):
        return None
    fault = next((hit for hit in faults if "Xid" not in hit.line.text), faults[0] if faults else exits[0])
    if not exits and "device fault" not in fault.line.text and not str(fault.line.fields.get("deployment", "")):
        return None
    xid = next((m["number"] for hit in faults if (m := _XID.search(hit.line.text))), "")
    name = str(fields_of(fault).get("deployment", "")) or next((d for hit in exits if (d := str(fields_of(hit).get("deployment", "")))), "")
    place = deployment(case, name)
    what = mask((fault["what"] or fault.line.text).strip())[:160] if faults else ""
    times = max(len(exits), 1)
    named = re.search(r"\b(?:cuda|rocm):\d+", fault.line.text)
    device = place.device if ":" in place.device else named[0] if named else "the GPU"
    device_zh = device if ":" in device else "该 GPU"
    driver = next((hit for hit in faults if "Xid" in hit.line.text), None)
    again = Words(
        "once; the restart is automatic and enough" if times == 1 else f"{times} times: hardware or driver of {device}",
        "发生一次；自动重启已足够" if times == 1 else f"发生 {times} 次：应怀疑 {device_zh} 的硬件或驱动",
    )
    known = Words(f" The driver logged Xid {xid}." if xid else "", f"驱动记录了 Xid {xid}。" if xid else "")
    told = Words(f" (`{what}`)" if what else ", whose text is not in this log", f"（`{what}`）" if what else "（其文本不在本日志中）")
    number = device.partition(":")[2] or "0"
    other = f"{device.partition(':')[0]}:{int(number) + 1}" if number.isdigit() and ":" in device else "auto"
    cards = case.context.get("host.gpus")
    if isinstance(cards, list) and number.isdigit() and ":" in device:
        other = "cpu" if len(cards) < 2 else f"{device.partition(':')[0]}:{(int(number) + 1) % len(cards)}"
    fixes = [
        Fix(Words("see what the driver says of that card", "查看驱动对该卡的记录"), "sudo dmesg -T | grep -iE 'xid|amdgpu|nvrm'"),
        Fix(
            Words("test the card, and keep the model off it meanwhile: another device", "检测该卡，期间把模型放到其他设备"),
            f"global.model_catalog.deployments.{name}.device: {other}"
            if place.managed and name
            else f"vllm-srun serve {place.artifact} --device {other}".replace("  ", " "),
        ),
    ]
    if times == 1:
        fixes = [
            Fix(
                Words("nothing at once: the router starts the worker again by itself; watch the counter", "暂不需处理：路由器会自动重启 worker，观察计数即可"),
                "curl -s localhost:9190/metrics | grep vsr_model_runtime_restarts_total",
            ),
            *fixes,
        ]
    return Found(
        cause=Words(
            f"The worker of {name or 'the model'} ended with code 3 after a device fault{told.en}, {again.en}.{known.en} After such an error the process cannot use the card any more, so it leaves on purpose; this is not a lack of memory.",
            f"{name or '该模型'}的 worker 在设备故障{told.zh}后以退出码 3 结束，{again.zh}。{known.zh}出现此类错误后进程无法再使用该卡，因此有意退出；这不是内存不足。",
        ),
        evidence=[fault.quote(), *(hit.quote() for hit in exits[:1]), *([driver.quote()] if driver and driver is not fault else [])],
        fixes=fixes,
        verify=Words(
            "`curl -s localhost:9190/metrics | grep vsr_model_runtime_restarts_total` stays flat over an hour of load",
            "一小时负载内 `curl -s localhost:9190/metrics | grep vsr_model_runtime_restarts_total` 不再增长",
        ),
        confidence=0.7 if not (faults and exits) else 0.9 if times > 1 else 0.8,
        weight="degraded" if times == 1 else "fatal",
        explains=("R13", "R32", "L11"),
    )


RULES: Final = (
    Rule(
        id="R32",
        title=Words("The worker process cannot run", "worker 进程无法运行"),
        symptoms=Words("it ends at once several times, or its command cannot be run", "多次立即退出，或命令无法运行"),
        why=Words("wrong VLLM_SRUN_COMMAND, missing package, bad socket folder", "VLLM_SRUN_COMMAND 错误、缺少包、socket 目录有问题"),
        needs=Words("the first lines of the worker", "worker 的最初几行"),
        remedy=Words("correct the command; a private, short socket folder", "更正命令；使用短路径的私有 socket 目录"),
        check=Words("the worker stays up", "worker 保持运行"),
        judge=worker_does_not_stay,
        sees=(EXITED, CANNOT_RUN, SOCKET, NO_MODULE, IN_RUNTIME, *DEPLOYMENTS),
    ),
    Rule(
        id="R33",
        title=Words("A device fault ended the worker", "设备故障导致 worker 退出"),
        symptoms=Words("exit code 3 after a CUDA or HIP error while serving", "服务期间出现 CUDA 或 HIP 错误后以退出码 3 退出"),
        why=Words("illegal access, device assert, or hardware", "非法访问、设备断言或硬件故障"),
        needs=Words("the error, the driver's log", "错误文本与驱动日志"),
        remedy=Words("the restart is automatic; repeated: hardware or driver, another device", "自动重启；若反复发生：检查硬件或驱动，换设备"),
        check=Words("`vsr_model_runtime_restarts_total` flat", "`vsr_model_runtime_restarts_total` 不再增长"),
        judge=device_fault,
        sees=(DEVICE_FAULT, EXITED, IN_RUNTIME, *DEPLOYMENTS),
    ),
)
