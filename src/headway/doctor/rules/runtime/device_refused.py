"""The device cannot run the model: not there (R5), without a capability (R6 LAPACK, R7 FP8, R8 NVFP4)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.runtime.deployments import Deployment, deployment, flag_or_setting
from headway.doctor.rules.runtime.refusal import CONSEQUENCES, refusal
from headway.doctor.rules.runtime.statement import Statement, called, stated
from headway.doctor.words import Words

NO_DEVICE: Final = sight("device not available")
NO_LAPACK: Final = sight("built without LAPACK")
FP8: Final = sight("FP8 weights need an NVIDIA GPU of compute capability 8.9")
NVFP4: Final = sight("NVFP4 packages need FP4 tensor cores")
DEVICE: Final = re.compile(r"\b(?P<device>(?:cuda|rocm|xpu|mps|npu|hip)(?::\d+)?|cpu)\b")
_TORCH: Final = re.compile(r"\b\d+\.\d+\.\d+\+(?P<build>cpu|cu\d+|rocm[\d.]+)")


def device_is_not_there(case: Case) -> Found | None:
    found = stated(case, NO_DEVICE)
    if found is None:
        return None
    place = deployment(case, found.model)
    devices = [m["device"] for m in DEVICE.finditer(found.rest)]
    asked = devices[0] if devices else place.device or "the named device"
    there = [name for name in dict.fromkeys(devices[1:]) if name != asked]
    torch = _TORCH.search(found.rest) or _TORCH.search(case.context.text("versions.torch"))
    kind = asked.partition(":")[0]
    mismatch = torch is not None and (
        torch["build"] == "cpu" or (kind == "cuda" and torch["build"].startswith("rocm")) or (kind == "rocm" and torch["build"].startswith("cu"))
    )
    listed = ", ".join(there) or "none"
    why = Words(f"visible here: {listed}", f"此处可见：{listed if there else '无'}") if there or not mismatch else Words("", "")
    if mismatch and torch is not None:
        why = Words(f"the installed PyTorch ({torch[0]}) cannot use such a device", f"所装 PyTorch（{torch[0]}）不支持此类设备")
    fixes = [Fix(Words("let the runtime choose", "让运行时自动选择设备"), flag_or_setting(place, "device", "auto", "device"))]
    if there:
        fixes.append(Fix(Words(f"or name one that exists: {listed}", f"或指定存在的设备：{listed}"), flag_or_setting(place, "device", there[0], "device")))
    if mismatch:
        build = "cu128" if kind == "cuda" else "rocm6.4"
        fixes.append(
            Fix(
                Words(f"or install the PyTorch for {kind}", f"或安装支持 {kind} 的 PyTorch"),
                f"pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/{build}",
            )
        )
    hidden = case.context.text("env.CUDA_VISIBLE_DEVICES")
    if hidden:
        fixes.append(
            Fix(
                Words(
                    f"CUDA_VISIBLE_DEVICES={hidden} renumbers the cards: the first visible one is {kind}:0",
                    f"CUDA_VISIBLE_DEVICES={hidden} 会重新编号：第一张可见卡为 {kind}:0",
                ),
                None,
            )
        )
    name = called(found.model or place.artifact, "The model", "该模型")
    return Found(
        cause=Words(
            f"{name.en} is to run on {asked}, which this runtime does not have{f' ({why.en})' if why.en else ''}. Nothing was downloaded or damaged; the setting or the PyTorch build has to change.",
            f"{name.zh} 被指定到 {asked}，但本运行时没有该设备{f'（{why.zh}）' if why.zh else ''}。没有下载或损坏任何文件；需要修改设置或更换 PyTorch 版本。",
        ),
        evidence=[found.quote],
        fixes=fixes,
        verify=Words(
            "`vllm-srun devices` lists the device, and the log says `loading weights on` it",
            "`vllm-srun devices` 列出该设备，且日志出现 `loading weights on` 该设备",
        ),
        confidence=STATED,
        explains=CONSEQUENCES,
    )


def no_lapack(case: Case) -> Found | None:
    found = stated(case, NO_LAPACK)
    if found is None:
        return None
    place = deployment(case, found.model)
    torch = _TORCH.search(found.rest) or _TORCH.search(case.context.text("versions.torch"))
    build = torch[0] if torch else ""
    is_rocm = torch is None or torch["build"].startswith("rocm")
    name = called(found.model or place.artifact, "This model", "该模型")
    gpu = "rocm:0" if is_rocm else "cuda:0"
    return Found(
        cause=Words(
            f"{name.en} solves triangular systems with LAPACK on the CPU, and this PyTorch{f' ({build})' if build else ''} has none{', like every build for ROCm' if is_rocm else ''}. A LAPACK of the system"
            " is not used by PyTorch, and the runtime does not try again.",
            f"{name.zh} 在 CPU 上要用 LAPACK 求解三角方程组，而该 PyTorch{f'（{build}）' if build else ''}不含 LAPACK{'（ROCm 构建即如此）' if is_rocm else ''}。PyTorch 不会使用系统的 LAPACK，运行时也不会重试。",
        ),
        evidence=[found.quote],
        fixes=[
            Fix(Words("put the model on the GPU", "把模型放到 GPU 上"), flag_or_setting(place, "device", gpu, "device")),
            Fix(
                Words(
                    "or run models of the CPU with the CPU image (the CPU build of PyTorch, which has LAPACK)",
                    "或用 CPU 镜像（含 LAPACK 的 PyTorch CPU 构建）运行 CPU 上的模型",
                ),
                "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu",
            ),
        ],
        verify=Words(
            "`python -c 'import torch; print(torch._C.has_lapack)'` prints True where CPU models run, or the log says `ready on " + gpu + "`",
            "在运行 CPU 模型处执行 `python -c 'import torch; print(torch._C.has_lapack)'` 输出 True，或日志出现 `ready on " + gpu + "`",
        ),
        confidence=STATED,
        explains=CONSEQUENCES,
    )


def _card(case: Case, found: Statement, place: Deployment) -> tuple[str, list[Quote]]:
    """What is known of the device: `NVIDIA A100, capability 8.0`."""
    device = next((m["device"] for m in DEVICE.finditer(found.rest)), place.device)
    number = device.partition(":")[2]
    index = int(number) if number.isdigit() else 0
    cards = case.context.items("host.gpus")
    told = re.search(r"capability (?P<value>\d+\.\d+)(?! or later)", found.rest)
    if device != "cpu" and index < len(cards) and isinstance(cards[index], dict):
        card = cards[index]
        capability = card.get("capability")
        parts = [str(card.get("name", device)), f"capability {capability}" if capability else ""]
        return f"{device + ': ' if device else ''}{', '.join(part for part in parts if part)}", [
            case.context.quote(f"host.gpus.{index}", f"{card.get('name')} {capability}")
        ]
    if told:
        return f"{device or 'the device'}: capability {told['value']}", []
    return device, []


def no_fp8_units(case: Case) -> Found | None:
    found = stated(case, FP8)
    if found is None:
        return None
    place = deployment(case, found.model)
    device, quotes = _card(case, found, place)
    name = called(found.model or place.artifact, "The package", "该模型包")
    return Found(
        cause=Words(
            f"The weights of {name.en} are FP8, and this device{f' ({device})' if device else ''} has no FP8 matrix units: those begin with compute capability 8.9 (Ada, Hopper, Blackwell) and with MI300."
            " This is final; drivers and settings do not add them.",
            f"{name.zh} 的权重为 FP8，而该设备{f'（{device}）' if device else ''}没有 FP8 矩阵单元：计算能力 8.9 起（Ada、Hopper、Blackwell）以及 MI300 起才有。这是最终失败，驱动和设置无法弥补。",
        ),
        evidence=[found.quote, *quotes],
        fixes=_other_package(
            place, "BF16 or int4", "BF16 或 int4", "a GPU of capability 8.9 or later, or an MI300 or MI350", "计算能力 8.9 及以上的 GPU，或 MI300、MI350"
        ),
        verify=Words(
            "`nvidia-smi --query-gpu=name,compute_cap --format=csv` shows 8.9 or more for the device of the FP8 package, or the other package goes to `ready on`",
            "FP8 包所在设备的 `nvidia-smi --query-gpu=name,compute_cap --format=csv` 不低于 8.9，或另一个包进入 `ready on`",
        ),
        confidence=STATED,
        explains=(*CONSEQUENCES, "Q3", "Q20"),
    )


def no_fp4_units(case: Case) -> Found | None:
    found = stated(case, NVFP4)
    if found is None:
        return None
    place = deployment(case, found.model)
    device, quotes = _card(case, found, place)
    name = called(found.model or place.artifact, "The package", "该模型包")
    software = Words("", "")
    fix = None
    if re.search(r"[Tt]riton", found.rest):
        software, fix = (
            Words("Triton is missing", "缺少 Triton"),
            Fix(Words("install Triton beside PyTorch", "在 PyTorch 之外安装 Triton"), "pip install triton"),
        )
    elif re.search(r"FP4 tensors|float4", found.rest):
        told = re.search(r"(?:PyTorch|torch) (?P<version>\d+\.\d[\w.+]*)", found.rest)
        version = told["version"].rstrip(".") if told else case.context.text("versions.torch")
        its = f"PyTorch {version}" if version else "PyTorch"
        software = Words(f"its {its} has no FP4 tensors", f"其 {its} 没有 FP4 张量")
        fix = Fix(
            Words("a PyTorch that has FP4 tensors (2.8 or later)", "带有 FP4 张量的 PyTorch（2.8 及以上）"),
            "pip install --upgrade torch --index-url https://download.pytorch.org/whl/cu128",
        )
    why = (
        Words(f"the device may be able to, but {software.en}", f"设备可能支持，但{software.zh}")
        if software.en
        else Words(
            f"this device{f' ({device})' if device else ''} has no FP4 tensor cores, which only Blackwell (capability 10.x or 12.x) has",
            f"该设备{f'（{device}）' if device else ''}没有 FP4 Tensor Core，只有 Blackwell（计算能力 10.x 或 12.x）才有",
        )
    )
    others = _other_package(
        place,
        "BF16, FP8 or int4",
        "BF16、FP8 或 int4",
        "a Blackwell GPU (capability 10.x or 12.x) with recent PyTorch and Triton",
        "Blackwell GPU（计算能力 10.x 或 12.x），配较新的 PyTorch 与 Triton",
    )
    return Found(
        cause=Words(
            f"The weights of {name.en} are NVFP4, and they cannot be multiplied here: {why.en}. The runtime does not try again.",
            f"{name.zh} 的权重为 NVFP4，在此无法计算：{why.zh}。运行时不会重试。",
        ),
        evidence=[found.quote, *quotes],
        fixes=[fix, *others] if fix else others,
        verify=Words(
            "the NVFP4 package goes to `ready on` on a card whose `nvidia-smi --query-gpu=compute_cap --format=csv` is 10.x or 12.x, or the other package does here",
            "在 `nvidia-smi --query-gpu=compute_cap --format=csv` 为 10.x 或 12.x 的卡上 NVFP4 包进入 `ready on`，或换包后在此进入 `ready on`",
        ),
        confidence=STATED,
        explains=(*CONSEQUENCES, "Q3", "Q20"),
    )


def _other_package(place: Deployment, packages: str, packages_zh: str, cards: str, cards_zh: str) -> list[Fix]:
    plain = re.sub(r"[-_](?:NVFP4|FP8|nvfp4|fp8)(?:[-_]\w+)?$", "", place.artifact)
    command = None
    if plain and plain != place.artifact:
        command = f"global.model_catalog.deployments.{place.name}.artifact: {plain}" if place.managed else f"vllm-srun serve {plain}"
    return [
        Fix(Words(f"take the {packages} package of the model", f"改用该模型的 {packages_zh} 包"), command),
        Fix(Words(f"or serve this package on {cards}", f"或改用合适的设备运行该包：{cards_zh}"), "vllm-srun devices"),
    ]


_ROWS: Final = (
    ("R5", Words("The device does not exist here", "指定的设备不存在"), NO_DEVICE,
     Words("no such device, or this PyTorch cannot use it", "没有该设备，或 PyTorch 不支持"), Words("`vllm-srun devices`, the torch build", "`vllm-srun devices` 与 torch 构建"),
     Words("`device: auto` or an existing one, the right PyTorch", "`device: auto` 或存在的设备，正确的 PyTorch"), Words("the device line in the log", "日志中的设备行"), device_is_not_there),
    ("R6", Words("This PyTorch has no LAPACK", "该 PyTorch 不含 LAPACK"), NO_LAPACK,
     Words("decoders need LAPACK on the CPU; builds for ROCm have none; final", "解码器在 CPU 上需要 LAPACK，ROCm 构建没有；最终失败"), Words("torch build, device", "torch 构建、设备"),
     Words("the GPU, or the CPU image", "放到 GPU，或使用 CPU 镜像"), Words("it loads", "能够加载"), no_lapack),
    ("R7", Words("The device has no FP8 units", "设备没有 FP8 单元"), FP8,
     Words("no FP8 matrix units; final", "没有 FP8 矩阵单元；最终失败"), Words("device, capability", "设备、计算能力"),
     Words("such a GPU, or the BF16 or int4 package", "此类 GPU，或 BF16、int4 包"), Words("it loads", "能够加载"), no_fp8_units),
    ("R8", Words("The device cannot compute NVFP4", "设备无法计算 NVFP4"), NVFP4,
     Words("CPU, ROCm, another capability, or software without FP4; final", "CPU、ROCm、计算能力不符或软件不支持 FP4；最终失败"), Words("capability, torch, Triton", "计算能力、torch、Triton"),
     Words("Blackwell with recent PyTorch and Triton, or another package", "Blackwell 配较新的 PyTorch 与 Triton，或换包"), Words("it loads", "能够加载"), no_fp4_units),
)  # fmt: skip

RULES: Final = tuple(refusal(*row) for row in _ROWS)
