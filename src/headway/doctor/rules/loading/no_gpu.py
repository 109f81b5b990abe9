"""L19: no usable GPU: which link between the process and the card is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.startup import STAGES
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.gpu_isolation import (
    CONTAINER,
    KUBELET,
    NO_DRIVER,
    found_broken,
    no_driver,
    not_let_in,
)
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_DEVICE: Final = sight(
    "Failed to infer device type",
    "No CUDA GPUs are available",
    "No HIP GPUs are available",
    "no CUDA-capable device is detected",
    "No accelerator (CUDA",
    "CUDA driver initialization failed",
    "CUDA unknown error",
    "invalid device ordinal",
    "Unexpected error from cudaGetDeviceCount",
    "Insufficient nvidia.com/gpu",
)
NO_CUDA_BUILD: Final = sight("not compiled with CUDA enabled", "Torch not compiled with CUDA")
OLD_DRIVER: Final = sight(
    "driver on your system is too old",
    "driver version is insufficient for CUDA runtime",
    "the provided PTX was compiled with an unsupported toolchain",
    "please update your driver",
    "unsatisfied condition: cuda>=",
    "forward compatibility was attempted on non supported HW",
    pattern=r"(?P<compatible>forward compatibility was attempted)|driver on your system is too old(?: \(found version (?P<found>\d+)\))?|driver version is insufficient|unsupported toolchain|unsatisfied condition: cuda>=(?P<needs>[\d.]+)|update your driver",
)
MISMATCH: Final = sight(
    "Driver/library version mismatch",
    "version mismatch between kernel module",
    "unsupported display driver / cuda driver combination",
)
FABRIC: Final = sight("system not yet initialized")
PLACES: Final = (NO_DEVICE, NO_CUDA_BUILD, OLD_DRIVER, MISMATCH, FABRIC, NO_DRIVER, CONTAINER)
_PROBES: Final = 'nvidia-smi; echo CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES; python -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.device_count())"; ls -l /dev/nvidia*'


def no_usable_gpu(case: Case) -> Found | None:
    """The links are tried from the process outwards: variable, torch build, isolation, driver. The first one that is
    shown to be broken is the cause."""
    hit = next((hit for hit in case.log.hits(*PLACES) if not only_a_warning(hit) and not overcome(case, hit)), None)
    platform = case.log.first(STAGES["platform"])
    on_purpose = platform is not None and "platform cpu" in platform.line.text
    if hit is None or on_purpose or of_the_model_runtime(case):
        return None
    for link in _LINKS:
        if found := link(case, hit):
            return found
    gpus = case.context.get("host.gpus")
    if gpus == []:
        return found_broken(
            case,
            Words(
                "This machine has no GPU (its list is empty), and the program looks for one.",
                "本机没有 GPU（列表为空），而程序在寻找 GPU。",
            ),
            hit,
            [
                Fix(
                    Words("run on the CPU on purpose, with the CPU build", "明确使用 CPU 构建在 CPU 上运行"),
                    "headway serve " + (case.launch.model or "smollm2-135m-instruct"),
                ),
                Fix(Words("or start it on a machine with a GPU", "或在有 GPU 的机器上启动")),
            ],
            0.9,
        )
    return found_broken(
        case,
        Words(
            "No usable GPU was found by the process. One of four links is broken: CUDA_VISIBLE_DEVICES, the torch build, the isolation (container, cgroup), or the driver; the log alone does not say which.",
            "进程没有找到可用的 GPU。四个环节之一断开：CUDA_VISIBLE_DEVICES、torch 构建、隔离（容器、cgroup）或驱动；仅凭日志无法判断是哪一个。",
        ),
        hit,
        [
            Fix(
                Words(
                    "look at the four links in one go; repair the first that is wrong, and no other",
                    "一次检查四个环节；只修复第一个有问题的环节",
                ),
                _PROBES,
            )
        ],
        0.7,
    )


def _variable(case: Case, hit: Hit) -> Found | None:
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        members = case.context.members("env")
        if members.get(name) is None:  # not set
            continue
        value = str(members[name]).strip()
        count = len(case.context.items("host.gpus"))
        numbers = [int(number) for number in re.findall(r"\d+", value)] if re.fullmatch(r"[\d, ]+", value) else []
        absent = [number for number in numbers if count and number >= count]
        if value in ("", "-1", "NoDevFiles", "none", "void") or absent:
            why = (
                Words(
                    f"{name}={value} names device {absent[0]}, but this machine has {count} (0 to {count - 1})",
                    f"{name}={value} 指定了设备 {absent[0]}，但本机只有 {count} 个（0 到 {count - 1}）",
                )
                if absent
                else Words(
                    f"{name} is {f'set to {value}' if value else 'set and empty'}, which hides every GPU from the process",
                    f"{name} 被设为{f' {value}' if value else '空值'}，对进程隐藏了所有 GPU",
                )
            )
            good = ",".join(str(index) for index in range(count)) if absent else ""
            fixes = [
                Fix(Words("name devices that exist", "指定存在的设备"), f"export {name}={good}")
                if absent
                else Fix(
                    Words("unset the variable where the server is started", "在启动服务器处取消该变量"), f"unset {name}"
                )
            ]
            return found_broken(
                case,
                Words(f"{why.en}. Driver and torch are not the problem.", f"{why.zh}。问题不在驱动或 torch。"),
                hit,
                fixes,
                STATED,
                f"env.{name}",
            )
    return None


def _torch_build(case: Case, hit: Hit) -> Found | None:
    torch = case.context.text("versions.torch")
    seen = case.log.first(NO_CUDA_BUILD)
    has_card = bool(case.context.items("host.gpus"))
    if seen is None and ("+cpu" not in torch or not has_card):
        return None
    return found_broken(
        case,
        Words(
            f"The installed torch{' ' + torch if torch else ''} is a build without CUDA: it cannot use any GPU, whatever the driver says.",
            f"已安装的 torch{' ' + torch if torch else ''} 是不带 CUDA 的构建：无论驱动如何都无法使用 GPU。",
        ),
        seen or hit,
        [
            Fix(
                Words("install a torch build with CUDA", "安装带 CUDA 的 torch 构建"),
                "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128",
            ),
            Fix(Words("or run on the CPU on purpose", "或明确在 CPU 上运行")),
        ],
        STATED,
        "versions.torch" if torch else "",
    )


# CUDA releases that torch wheels were built for, newest first
_BUILDS: Final = (
    ((13, 0), "cu130"),
    ((12, 9), "cu129"),
    ((12, 8), "cu128"),
    ((12, 6), "cu126"),
    ((12, 4), "cu124"),
    ((12, 1), "cu121"),
    ((11, 0), "cu118"),
)


def _old_driver(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(OLD_DRIVER)
    if seen is None:
        return None
    driver = case.context.text("host.driver")
    found, needs, torch = seen["found"], seen["needs"], case.context.text("versions.torch")
    cuda = f"{int(found) // 1000}.{int(found) % 1000 // 10}" if found else ""
    wants = needs or (f"{built[1][:-1]}.{built[1][-1]}" if (built := re.search(r"\+cu(\d{3})", torch)) else "")
    own = Words(
        f"The NVIDIA driver{' ' + driver if driver else ''} is too old" + (f": it knows CUDA {cuda}" if cuda else ""),
        f"NVIDIA 驱动{' ' + driver if driver else ''} 太旧" + (f"：最高支持 CUDA {cuda}" if cuda else ""),
    )
    asked = Words(f", and the build wants CUDA {wants}" if wants else "", f"，而构建需要 CUDA {wants}" if wants else "")
    if seen["compatible"]:
        own = Words(
            f"{own.en} for this image: it falls back on forward-compatibility libraries (error 804), which this card does not support",
            f"{own.zh}，与该镜像不符：它改用 forward compatibility 库（错误 804），而这张卡不支持",
        )
    fixes = [
        Fix(
            Words("update the driver of the host (not of the container)", "更新宿主机（而非容器）的驱动"),
            "sudo apt-get install -y --only-upgrade 'nvidia-driver-*' && sudo reboot",
        )
    ]
    wheel = next((name for release, name in _BUILDS if cuda and tuple(map(int, cuda.split("."))) >= release), "")
    fixes.append(
        Fix(
            Words(
                f"or install a build for the CUDA version that the driver knows{f' ({cuda})' if cuda else ''}",
                f"或安装与驱动支持的 CUDA 版本{f'（{cuda}）' if cuda else ''}相符的构建",
            ),
            f"pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/{wheel}"
            if wheel
            else None,
        )
    )
    return found_broken(
        case,
        Words(f"{own.en}{asked.en}.", f"{own.zh}{asked.zh}。"),
        seen,
        fixes,
        STATED,
        "host.driver" if driver else "",
    )


def _mismatch(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(MISMATCH)
    if seen is None:
        return None
    return found_broken(
        case,
        Words(
            "The loaded kernel module and the user libraries of the NVIDIA driver have different versions: the driver was updated and the machine not restarted (rebooted).",
            "已加载的内核模块与 NVIDIA 驱动用户库版本不同：驱动更新后没有重启。",
        ),
        seen,
        [
            Fix(
                Words(
                    "restart the machine, or unload and load the module while nothing uses the card",
                    "重启机器，或在无程序使用显卡时卸载并重新加载模块",
                ),
                "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia_uvm",
            )
        ],
        STATED,
    )


def _fabric(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(FABRIC)
    if seen is None:
        return None
    return found_broken(
        case,
        Words(
            "The GPUs of this NVSwitch machine are not initialised (error 802): the fabric manager does not run, or its version is not the driver's.",
            "这台 NVSwitch 机器的 GPU 尚未初始化（错误 802）：fabric manager 没有运行，或其版本与驱动不一致。",
        ),
        seen,
        [
            Fix(
                Words("start the fabric manager on the host", "在宿主机上启动 fabric manager"),
                "sudo systemctl enable --now nvidia-fabricmanager && systemctl status nvidia-fabricmanager --no-pager",
            )
        ],
        0.92,
    )


_LINKS: Final[tuple[Callable[[Case, Hit], Found | None], ...]] = (
    _variable,
    _torch_build,
    _mismatch,
    _fabric,
    _old_driver,
    not_let_in,
    no_driver,
)

RULES: Final = (
    Rule(
        id="L19",
        title=Words("No usable GPU", "没有可用的 GPU"),
        symptoms=Words(
            "`Failed to infer device type`, `No CUDA GPUs are available`, a driver that is too old",
            "`Failed to infer device type`、`No CUDA GPUs are available`、驱动太旧",
        ),
        why=Words(
            "one link between process and card is broken: variable, torch build, container, driver",
            "进程到显卡之间的某个环节断开：环境变量、torch 构建、容器、驱动",
        ),
        needs=Words(
            "CUDA_VISIBLE_DEVICES, the torch build, the driver, the isolation",
            "CUDA_VISIBLE_DEVICES、torch 构建、驱动、隔离方式",
        ),
        remedy=Words("the link that is broken, no other; or the CPU on purpose", "只修复断开的环节；或明确使用 CPU"),
        check=Words("`torch.cuda.is_available()`", "`torch.cuda.is_available()`"),
        judge=no_usable_gpu,
        sees=(*PLACES, KUBELET),
    ),
)
