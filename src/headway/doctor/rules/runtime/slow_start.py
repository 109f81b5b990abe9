"""Models that are not ready yet: the wait ended too early (R11), tries that go on (R24), a self-check that is slow on a CPU (R27)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.load import clock_seconds
from headway.doctor.facts.memory import gib
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import Deployment, deployment, parameters_of
from headway.doctor.rules.runtime.statement import READY, RETRYING, became_ready, called, model_of, stated
from headway.doctor.words import Words

WARMING: Final = sight(") warming", '"warming"', "=warming", pattern=r"ready: (?P<model>\S+) \([^)]+\) warming|\b(?:phase|state|status)=warming\b")
ENDED: Final = sight(
    "did not become ready within",
    pattern=r"(?:deployment |model )?(?P<name>[\w./\-]{1,120}) did not become ready within (?P<time>(?:\d+h)?(?:\d+m)?(?:[\d.]+s)?)(?:: it is (?P<state>\w+)(?: \((?P<why>.*)\))?)?",
)
PROGRESS: Final = sight(
    "ownloading",
    "loading weights on",
    pattern=r"model (?P<model>[\w./\-]+): .*?downloading (?:(?P<file>\S+) )?(?P<percent>\d+(?:\.\d+)?) ?%(?: \((?P<rate>[\d.]+) (?P<unit>[kKMG]i?B)/s\))?"
    r"|\b(?P<done>[\d.]{1,12} [KMG]i?B) of (?P<all>[\d.]+ [KMG]i?B)",
    series=True,
)
CHECKING: Final = sight("running the golden check", pattern=r"model (?P<model>[\w./\-]+): running the golden check|running the golden check")
CHECKED: Final = sight("golden requests done", pattern=r"\b(?P<done>\d{1,6}) of (?P<all>\d{1,6}) golden requests done \((?P<seconds>[\d.]+) ?s")
_SEES: Final = (*DEPLOYMENTS, READY, RETRYING)
_GO_TIME: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?")
_LONG_SECONDS: Final = 180.0
_WAITS: Final = 2  # so many lines of waiting say nothing yet
_SMALL: Final = "vllm-sr/Decision-2.0-Kai-0.6B"


def go_seconds(text: str) -> float:
    """`10m0s` as seconds."""
    found = _GO_TIME.fullmatch(text)
    return sum(float(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True)) if found else 0.0


@dataclass(frozen=True, slots=True)
class _Download:
    """`percent` at the last line; `rate`: percent per second; `last`: that line."""

    percent: float
    rate: float
    speed: str
    first: Hit
    last: Hit

    @property
    def left(self) -> float | None:
        return (100.0 - self.percent) / self.rate if self.rate > 0 else None


def _download(case: Case, name: str) -> _Download | None:
    hits = [hit for hit in case.log.hits(PROGRESS) if not name or model_of(hit) in ("", name) or hit["model"] == name]
    if not hits:
        return None
    first, last = hits[0], hits[-1]
    began, ended = clock_seconds(first.line.clock), clock_seconds(last.line.clock)
    grown = _percent(last) - _percent(first)
    rate = grown / (ended - began) if began is not None and ended is not None and ended > began else 0.0
    speed = f"{last['rate']} {last['unit']}/s" if last["rate"] else ""
    return _Download(_percent(last), rate, speed, first, last)


def _percent(hit: Hit) -> float:
    return hit.number("percent") if hit["percent"] else 100 * gib(hit["done"]) / max(gib(hit["all"]), 1e-9)


def wait_ended(case: Case) -> Found | None:
    hit = case.log.first(ENDED)
    if hit is None:
        return None
    name = hit["name"]
    deployed = hit.line.fields.get("deployment")
    name = deployed if isinstance(deployed, str) else name
    state = hit["state"] or str(hit.line.fields.get("state", ""))
    limit = go_seconds(hit["time"])
    download = _download(case, name)
    if state == "warming" or (download is None and case.log.sees(CHECKING)):
        return None  # it is the self-check that is slow
    steady = download is not None and download.percent > 0 and download.rate > 0
    loading = Words(f"it was still {state or 'loading'}", f"当时仍处于 {state or 'loading'}")
    left = download.left if download else None
    quotes = [hit.quote()]
    if download is not None and steady:
        quotes = [download.last.quote(), *quotes]
        speed = Words(f" at {download.speed}" if download.speed else "", f"（{download.speed}）" if download.speed else "")
        remaining = Words(f", about {left:.0f} s more at this pace" if left else "", f"，按此速度还需约 {left:.0f} 秒" if left else "")
        loading = Words(
            f"its download went on steadily{speed.en} and stood at {download.percent:g} %{remaining.en}",
            f"下载一直稳定进行{speed.zh}，已到 {download.percent:g} %{remaining.zh}",
        )
    needed = (limit + (left or limit)) * 1.5
    minutes = max(int(limit // 60) + 5, int(-(-needed // 300)) * 5)
    return Found(
        cause=Words(
            f"{name} was given up after {hit['time']} (VLLM_SRUN_READY_TIMEOUT), while {loading.en}. Nothing failed; what was downloaded stays in the cache, so deleting it would begin again.",
            f"{name} 在 {hit['time']} 后被放弃（VLLM_SRUN_READY_TIMEOUT），{loading.zh}。并没有出错；已下载的部分保留在缓存中，删除反而要从头开始。",
        ),
        evidence=quotes,
        fixes=[
            Fix(
                Words("start again: the download continues from the cache", "再次启动：下载会从缓存继续"),
                case.launch.command if "vllm-sr serve" in case.launch.command else "vllm-sr serve --config config.yaml",
            ),
            Fix(
                Words(f"or allow more time in the environment of the router ({minutes} min)", f"或在路由器的环境中放宽时限（{minutes} 分钟）"),
                f"VLLM_SRUN_READY_TIMEOUT={minutes}m",
            ),
        ],
        verify=Words(
            "`curl -s localhost:8080/startup-status` shows the deployment as `ready`, and `/ready` answers 200",
            "`curl -s localhost:8080/startup-status` 显示该 deployment 为 `ready`，且 `/ready` 返回 200",
        ),
        confidence=STATED if steady else 0.75,
        explains=("R13", "R24", "R30"),
    )


def tries_go_on(case: Case) -> Found | None:
    """What the error inside means, other rules know; this one tells that it has not passed."""
    found = stated(case, RETRYING)
    if found is None or found.attempt is None:
        return None
    error = found["error"].strip(" :")
    attempt, attempts = found.attempt
    waits = [5 * 2**index for index in range(attempts - 1)]
    waited = sum(waits[: max(0, attempt - 1)])
    place = deployment(case, found.model)
    name = called(found.model or place.artifact, "the model", "该模型")
    busy = re.search(r"busy|in use|unavailable|CUDA-capable", error, re.IGNORECASE)
    cut = re.search(r"download|connection|interrupted|reset|timed? ?out|IncompleteRead|HTTP", error, re.IGNORECASE)
    if cut:
        fix = Fix(
            Words(
                "see whether the hub can be reached from the runtime; a download that was cut goes on from where it was",
                "检查运行时能否访问 Hub；中断的下载会从断点继续",
            ),
            "curl -sI https://huggingface.co | head -1",
        )
    elif busy:
        fix = Fix(Words("see what holds the GPU and end it", "查看并结束占用 GPU 的进程"), "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv")
    else:
        fix = Fix(
            Words("repair what the error names; the runtime then loads the model by itself", "解决该错误所指的问题，运行时随后会自行加载"),
            "curl -s localhost:8100/v1/models",
        )
    return Found(
        cause=Words(
            f"{name.en} is not ready: attempt {attempt} of {attempts} ended with `{error[:200]}`, after {waited} s of pauses (5 s, doubling). That kind of error may pass by itself; this one has not yet, and more attempts do not remove it.",
            f"{name.zh} 尚未就绪：第 {attempt} 次尝试（共 {attempts} 次）以 `{error[:200]}` 结束，累计等待 {waited} 秒（首次 5 秒，逐次加倍）。此类错误可能自行消失，但目前还没有；增加尝试次数并不能消除它。",
        ),
        evidence=[found.quote],
        fixes=[fix],
        verify=Words("`curl -s localhost:8100/health` shows `ready`, the log `ready on`", "`curl -s localhost:8100/health` 显示 `ready`，日志出现 `ready on`"),
        confidence=0.75 if attempt >= 3 else 0.6 if attempt == 2 else 0.4,
    )


def self_check_is_slow(case: Case) -> Found | None:
    counted = case.log.last(CHECKED)
    begun = case.log.last(CHECKING) or (case.log.first(WARMING) if case.log.count(WARMING) > _WAITS else None)
    ended = case.log.first(ENDED)
    hit = counted or begun or (ended if ended and ended["state"] == "warming" else None)
    if hit is None or became_ready(case, model_of(hit) or (hit["model"] if "model" in hit.match.re.groupindex else ""), hit):
        return None
    name = (hit["model"] if "model" in hit.match.re.groupindex else "") or model_of(hit)
    if not name and begun is not None:
        name = begun["model"]
    place = deployment(case, name or (ended["name"] if ended else ""))
    if not _on_cpu(case, place):
        return None
    spent = _spent(case, begun, ended)
    size = parameters_of(place.artifact, name)
    cores = case.context.number("host.cpus")
    if counted is not None:
        each, total, done = counted.number("seconds"), int(counted["all"]), int(counted["done"])
        told = Words(
            f"{done} of {total} requests of its self-check took {each:g} s each, so the whole takes {each * total:g} s",
            f"自检的 {total} 个请求已完成 {done} 个，每个 {each:g} 秒，全部需要 {each * total:g} 秒",
        )
        if each * total < _LONG_SECONDS:
            return None
    elif spent is not None and spent >= _LONG_SECONDS:
        told = Words(f"its self-check has run for {spent:.0f} s", f"自检已运行 {spent:.0f} 秒")
    else:
        return None
    facts = ", ".join(part for part in (f"{size / 1e9:.1f} B parameters" if size else "", f"{cores:g} cores" if cores else "") if part)
    facts_zh = "，".join(part for part in (f"{size / 1e9:.1f} B 参数" if size else "", f"{cores:g} 核" if cores else "") if part)
    shown = name or place.artifact
    small = _SMALL if not shown.endswith("Kai-0.6B") else ""
    fixes = []
    if small:
        fixes.append(
            Fix(
                Words("a smaller model on the CPU", "在 CPU 上改用更小的模型"),
                f"global.model_catalog.deployments.{place.name}.artifact: {small}" if place.managed else f"vllm-srun serve {small} --device cpu",
            )
        )
    fixes.append(
        Fix(
            Words("or a GPU for this one", "或为它配备 GPU"),
            f"global.model_catalog.deployments.{place.name}.device: cuda:0" if place.managed else f"vllm-srun serve {place.artifact or shown} --device cuda:0",
        )
    )
    return Found(
        cause=Words(
            f"{shown or 'The model'}{f' ({facts})' if facts else ''} is loaded and warming on the CPU: {told.en}. It runs every request twice; nothing is stuck or damaged.",
            f"{shown or '该模型'}{f'（{facts_zh}）' if facts_zh else ''}已加载，正在 CPU 上预热：{told.zh}。每个请求会运行两次；没有卡死或损坏。",
        ),
        evidence=[hit.quote(), *([case.context.quote("host.cpus")] if cores else [])],
        fixes=fixes,
        verify=Words(
            "`curl -s localhost:8100/health` goes from `warming` to `ready` within a minute or two",
            "`curl -s localhost:8100/health` 在一两分钟内从 `warming` 变为 `ready`",
        ),
        confidence=0.9 if counted is not None else 0.8,
        weight="degraded" if ended is None else "fatal",
        explains=("R11", "R13"),
    )


def _on_cpu(case: Case, place: Deployment) -> bool:
    if place.device and place.device != "auto":
        return place.device == "cpu"
    return bool(case.context.get("host.gpus") == [])


def _spent(case: Case, begun: Hit | None, ended: Hit | None) -> float | None:
    """Seconds since the self-check began: up to the end of the wait, up to now, or up to the last word of it."""
    age = case.context.number("host.log_age_s")
    still = case.log.last(WARMING)
    if begun is not None and ended is not None:
        start, stop = clock_seconds(begun.line.clock), clock_seconds(ended.line.clock)
        if start is not None and stop is not None:
            return stop - start
    if begun is not None and still is not None and still.line.number > begun.line.number and age is None:
        start, now = clock_seconds(begun.line.clock), clock_seconds(still.line.clock)
        return now - start if start is not None and now is not None else None
    if ended is not None and begun is None:
        return go_seconds(ended["time"])
    return age


RULES: Final = (
    Rule(
        id="R11",
        title=Words("The wait for a model ended while it was still loading", "模型仍在加载时等待已超时"),
        symptoms=Words("`did not become ready within 10m0s` after steady progress", "稳定推进之后出现 `did not become ready within 10m0s`"),
        why=Words("the first download or load takes longer than VLLM_SRUN_READY_TIMEOUT", "首次下载或加载超过 VLLM_SRUN_READY_TIMEOUT"),
        needs=Words("progress and rate", "进度与速度"),
        remedy=Words("start again, or raise the variable", "再次启动，或调大该变量"),
        check=Words("ready", "就绪"),
        judge=wait_ended,
        sees=(ENDED, PROGRESS, CHECKING, *_SEES),
    ),
    Rule(
        id="R24",
        title=Words("A model is being retried and not ready", "模型仍在重试，尚未就绪"),
        symptoms=Words("`retrying after <error> (attempt i of n)` and no ready line", "`retrying after <error> (attempt i of n)` 且没有就绪行"),
        why=Words("a cause that may pass by itself", "可能自行消失的原因"),
        needs=Words("the error inside", "其中的错误"),
        remedy=Words("follow that error", "按该错误处理"),
        check=Words("ready", "就绪"),
        judge=tries_go_on,
        sees=_SEES,
    ),
    Rule(
        id="R27",
        title=Words("The self-check of a large model is slow on the CPU", "大模型在 CPU 上自检缓慢"),
        symptoms=Words("long `warming`, golden check on CPU", "长时间 `warming`，CPU 上进行 golden 检查"),
        why=Words("the check runs the model several times", "检查要多次运行模型"),
        needs=Words("parameters, cores, seconds per run", "参数量、核心数、每次耗时"),
        remedy=Words("a GPU or a smaller model", "GPU 或更小的模型"),
        check=Words("ready", "就绪"),
        judge=self_check_is_slow,
        sees=(CHECKING, CHECKED, WARMING, ENDED, *_SEES),
    ),
)
