"""The model does not fit the memory of its device (R4)."""

from __future__ import annotations

import re
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import SIZE, gib
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.runtime.deployments import Deployment, deployment, flag_or_setting, parameters_of
from headway.doctor.rules.runtime.device_refused import DEVICE
from headway.doctor.rules.runtime.refusal import CONSEQUENCES, refusal
from headway.doctor.rules.runtime.statement import called, stated
from headway.doctor.words import Words
from headway.runtime.loading.builtins import builtins

NO_ROOM: Final = sight("does not fit, out of memory")
_NEEDS: Final = re.compile(rf"needs? (?:about )?(?P<size>{SIZE})")
_FREE: Final = re.compile(rf"(?P<a>{SIZE}) (?:is |are )?(?:free|available)|free[ :=]+(?P<b>{SIZE})")
_BUDGET: Final = re.compile(rf"budget (?:is |of )?(?P<size>{SIZE})")
_RESERVE_GIB: Final = 2.0
_PARAMETER_BYTES: Final = 4


def out_of_memory(case: Case) -> Found | None:
    found = stated(case, NO_ROOM)
    if found is None:
        return None
    place = deployment(case, found.model)
    name = called(found.model or place.artifact, "the model", "该模型")
    needs, free, budget = _size(_NEEDS, found.rest), _size(_FREE, found.rest), _size(_BUDGET, found.rest)
    device = m["device"] if (m := DEVICE.search(found.rest)) else place.device
    room = budget if budget is not None and free is None else free
    fixes, quotes = _room(case, place, device, needs, room, budget is not None and free is None)
    where = device or "the device"
    parts, parts_zh = "", ""
    if needs is not None and room is not None:
        shown = _text(room, found.rest)
        there, there_zh = (
            (f"the memory budget is {shown}", f"内存预算为 {shown}")
            if free is None
            else (f"{shown} are free on {where}", f" {device or '该设备'} 剩余 {shown}")
        )
        parts = f"{name.en} needs {_text(needs, found.rest)} and {there}: {needs - room:.1f} GiB are missing."
        parts_zh = f"{name.zh} 需要 {_text(needs, found.rest)}，而{there_zh}：还差 {needs - room:.1f} GiB。"
    else:
        parts, parts_zh = f"{name.en} does not fit into the memory of {where}.", f"{name.zh} 放不进 {device or '该设备'} 的内存。"
    tries = Words(
        f" It was tried {found.attempt[0]} of {found.attempt[1]} times; only freed memory makes another try worth it." if found.attempt else "",
        f"已尝试 {found.attempt[0]}/{found.attempt[1]} 次；只有释放出内存，再试才有意义。" if found.attempt else "",
    )
    return Found(
        cause=Words(
            f"{parts} The estimate counts the weights and {_RESERVE_GIB:g} GiB for activations.{tries.en}",
            f"{parts_zh}估算包含权重与 {_RESERVE_GIB:g} GiB 激活预留。{tries.zh}",
        ),
        evidence=[found.quote, *quotes],
        fixes=fixes,
        verify=Words(
            f"`vllm-srun devices` shows at least {_text(needs, found.rest) if needs is not None else 'what the message asks for'} free on {where}, and the model goes to `ready on`",
            f"`vllm-srun devices` 显示 {where} 剩余不少于 {_text(needs, found.rest) if needs is not None else '报错所需的大小'}，且模型进入 `ready on`",
        ),
        confidence=STATED if needs is not None else 0.9,
        explains=(*CONSEQUENCES, "O3", "O5", "O1", "O15"),
    )


def _size(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return gib(next(group for group in found.groups() if group)) if found else None


def _text(size: float, message: str) -> str:
    """The size as the message writes it."""
    for found in re.finditer(SIZE, message):
        if abs(gib(found[0]) - size) < 1e-9:
            return found[0]
    return f"{size:.1f} GiB"


def _room(case: Case, place: Deployment, device: str, needs: float | None, room: float | None, is_budget: bool) -> tuple[list[Fix], list[Quote]]:
    fixes: list[Fix] = []
    quotes: list[Quote] = []
    cards = [card for card in case.context.items("host.gpus") if isinstance(card, dict)]
    kind, _, number = device.partition(":")
    index = int(number) if number.isdigit() else 0
    if is_budget and needs is not None:
        fixes.append(Fix(Words("raise the budget, if that much memory exists", "若确有这么多内存，提高预算"), f"--memory-budget {int(-(-needs // 1))}"))
    if kind in ("cuda", "rocm") and index < len(cards):
        for process in case.context.items(f"host.gpus.{index}.processes"):
            pid = process.get("pid") if isinstance(process, dict) else None
            if isinstance(pid, int):
                used = process.get("used_gib")
                size = f" ({used:g} GiB)" if isinstance(used, (int, float)) else ""
                quotes.append(case.context.quote(f"host.gpus.{index}.processes"))
                fixes.append(Fix(Words(f"stop the other process {pid}{size} on {device}", f"停止 {device} 上的另一进程 {pid}{size}"), f"kill {pid}"))
                break
    if needs is not None:
        fixes += _another_device(case, place, kind, index, cards, needs)
    smaller = _smaller(place.artifact or place.name, room)
    if smaller is not None:
        name, estimate = smaller
        setting = (
            f"global.model_catalog.deployments.{place.name}.artifact: {name}"
            if place.managed
            else f"vllm-srun serve {name}{f' --device {device}' if device else ''}"
        )
        fixes.append(
            Fix(
                Words(f"a smaller model of the same family ({estimate:.1f} GiB by the same estimate)", f"同系列更小的模型（同样估算为 {estimate:.1f} GiB）"),
                setting,
            )
        )
    fixes.append(
        Fix(
            Words(
                f"a smaller model or an int4 package, a larger GPU, replicas on another GPU, or stop what else uses {device or 'the device'}",
                f"更小的模型或 int4 包、更大的 GPU、把副本放到另一张 GPU，或停止占用 {device or '该设备'} 的其他程序",
            ),
            "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv" if kind == "cuda" else "vllm-srun devices",
        )
    )
    return fixes, quotes


def _another_device(case: Case, place: Deployment, kind: str, index: int, cards: list[dict[str, Any]], needs: float) -> list[Fix]:
    for other, card in enumerate(cards):
        total, used = card.get("memory_gib"), card.get("used_gib", 0)
        if other != index and isinstance(total, (int, float)) and isinstance(used, (int, float)) and total - used >= needs and kind in ("cuda", "rocm"):
            name = f"{kind}:{other}"
            return [
                Fix(
                    Words(f"put it on {name}, which has {total - used:.1f} GiB free", f"放到 {name}，该卡剩余 {total - used:.1f} GiB"),
                    flag_or_setting(place, "device", name, "device"),
                )
            ]
    ram = case.context.number("host.ram_gib")
    if kind != "cpu" and ram is not None and ram >= 1.5 * needs:
        return [
            Fix(
                Words(f"or run it on the CPU ({ram:g} GiB of RAM), slower", f"或在 CPU 上运行（内存 {ram:g} GiB），较慢"),
                flag_or_setting(place, "device", "cpu", "device"),
            )
        ]
    return []


def _needed(repo: str) -> float | None:
    """GiB by the runtime's own estimate, None when the size of the model is not known."""
    parameters = parameters_of(repo)
    return None if parameters is None else _PARAMETER_BYTES * parameters / 2**30 + _RESERVE_GIB


def _smaller(artifact: str, room: float | None) -> tuple[str, float] | None:
    """The largest built-in model of the same family that fits into `room`, with what it needs."""
    family = re.match(r"(?:[\w.\-]+/)?(?P<family>.+?-\d+\.\d+-)", artifact)
    if family is None or room is None:
        return None
    names = [each.repo for each in builtins() if each.short_name.startswith(family["family"]) and not artifact.endswith(each.short_name)]
    fitting = [(needed, name) for name in names if (needed := _needed(name)) is not None and needed <= room]
    return (max(fitting)[1], max(fitting)[0]) if fitting else None


_ROWS: Final = (
    ("R4", Words("The model does not fit the device's memory", "模型放不进设备内存"), NO_ROOM,
     Words("the estimate or an allocation is above free memory or budget", "估算或实际分配超过剩余内存或预算"), Words("needed, free, budget, other models on the device", "所需、剩余、预算、设备上的其他模型"),
     Words("smaller model or package, other device, higher budget", "更小的模型或包、其他设备、提高预算"), Words("needed < free", "所需 < 剩余"), out_of_memory),
)  # fmt: skip

RULES: Final = tuple(refusal(*each) for each in _ROWS)
