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
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.quoted import quoted
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
    "Insufficient nvidia.com/gpu",
)
NO_CUDA_BUILD: Final = sight("not compiled with CUDA enabled", "Torch not compiled with CUDA")
OLD_DRIVER: Final = sight(
    "driver on your system is too old",
    "driver version is insufficient for CUDA runtime",
    "the provided PTX was compiled with an unsupported toolchain",
    "please update your driver",
    "unsatisfied condition: cuda>=",
    pattern=r"driver on your system is too old(?: \(found version (?P<found>\d+)\))?|driver version is insufficient|unsupported toolchain|unsatisfied condition: cuda>=(?P<needs>[\d.]+)|update your driver",
)
MISMATCH: Final = sight("Driver/library version mismatch", "version mismatch between kernel module")
NO_DRIVER: Final = sight(
    "Found no NVIDIA driver on your system",
    "libcuda.so.1: cannot open shared object file",
    "couldn't communicate with the NVIDIA driver",
    "NVML Shared Library Not Found",
    "libcuda.so.1 not found",
)
CONTAINER: Final = sight(
    "could not select device driver", "nvidia-container-cli", "unknown or invalid runtime name: nvidia"
)
PLACES: Final = (NO_DEVICE, NO_CUDA_BUILD, OLD_DRIVER, MISMATCH, NO_DRIVER, CONTAINER)
# a check inside the container that saw no card
_BLIND: Final = re.compile(r"(?i)(?:container|pod|docker|inside).*(?:not found|no devices|no such|failed|no gpu)")
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
        return _found(
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
    return _found(
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
            return _found(
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
    return _found(
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
    return _found(
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
    return _found(
        case,
        Words(
            "The loaded kernel module and the user libraries of the NVIDIA driver have different versions: the driver was updated and the machine not restarted.",
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


def _isolation(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(CONTAINER) or case.log.first(NO_DRIVER)
    pods = re.search(r"(?i)insufficient nvidia\.com/gpu", hit.line.text)
    inside = case.context.get("host.in_container") is True or case.launch.command.startswith("docker")
    if pods:
        return _found(
            case,
            Words(
                "No node has a free GPU for the pod: the scheduler reports insufficient nvidia.com/gpu, so the pod waits and the engine never starts.",
                "没有节点有空闲 GPU 可供该 Pod 使用：调度器报告 nvidia.com/gpu 不足，Pod 一直等待，引擎从未启动。",
            ),
            hit,
            [
                Fix(
                    Words(
                        "see how many GPUs the nodes have and which pods hold them; free one or ask for fewer",
                        "查看各节点的 GPU 数量及占用的 Pod；释放一个或减少申请",
                    ),
                    "kubectl describe nodes | grep -A8 'Allocated resources'",
                ),
                Fix(
                    Words(
                        "a node without the device plugin offers none: check it",
                        "没有设备插件的节点不提供 GPU：检查插件",
                    ),
                    "kubectl get pods -A | grep nvidia-device-plugin",
                ),
            ],
            STATED,
        )
    probe = next(
        (index for index, text in enumerate(case.context.items("host.probes")) if _BLIND.search(str(text))), None
    )
    shown = seen is not None and (case.log.sees(CONTAINER) or inside)
    if not shown and probe is None and not (inside and case.context.get("host.gpus") == []):
        return None
    toolkit = case.log.sees(CONTAINER)
    gave = "--gpus" in case.launch.command or "nvidia" in case.launch.command
    why = Words(
        "The container runtime cannot pass the GPU on: the NVIDIA container toolkit is missing or not set up on the host."
        if toolkit
        else "The process runs in a container that was given no GPU: neither the driver library nor a device is visible inside it.",
        "容器运行时无法传递 GPU：宿主机缺少或未配置 NVIDIA 容器工具包。"
        if toolkit
        else "进程运行在没有分配 GPU 的容器中：容器内看不到驱动库和设备。",
    )
    fixes = []
    if not gave or not toolkit:
        fixes.append(
            Fix(
                Words("start the container with the GPUs (docker: --gpus all)", "启动容器时传入 GPU（docker：--gpus all）"),
                _with_gpus(case.launch.command),
            )
        )
    fixes.insert(
        0 if toolkit else 1,
        Fix(
            Words(
                "install and set up the NVIDIA container toolkit on the host", "在宿主机上安装并配置 NVIDIA 容器工具包"
            ),
            "sudo apt-get install -y nvidia-container-toolkit && sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        ),
    )
    path = (
        f"host.probes.{probe}"
        if probe is not None
        else "host.in_container"
        if case.context.has("host.in_container")
        else ""
    )
    return _found(case, why, seen or hit, fixes, 0.92, path)


def _with_gpus(command: str) -> str:
    """The command as given, with the GPUs; without one the option alone."""
    if "docker run" in command:
        return command.replace("docker run", "docker run --gpus all", 1)
    if "compose" in command:
        return "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}"
    return "--gpus all"


def _no_driver(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(NO_DRIVER)
    if seen is None:
        return None
    return _found(
        case,
        Words(
            "The process finds no NVIDIA driver: none is installed or loaded on this machine, or its library is not visible where the process runs (a container without --gpus).",
            "进程找不到 NVIDIA 驱动：本机没有安装或加载驱动，或进程运行处看不到驱动库（容器没有 --gpus）。",
        ),
        seen,
        [
            Fix(Words("in a container: pass the GPUs", "若在容器中：传入 GPU"), _with_gpus(case.launch.command)),
            Fix(
                Words(
                    "on the host: see whether the driver answers, else install and load it",
                    "在宿主机上：检查驱动是否响应，否则安装并加载",
                ),
                "nvidia-smi || sudo modprobe nvidia",
            ),
            Fix(Words("without a GPU: use the CPU build on purpose", "没有 GPU 时：明确使用 CPU 构建")),
        ],
        0.9,
    )


def _found(case: Case, why: Words, hit: Hit, fixes: list[Fix], confidence: float, path: str = "") -> Found:
    evidence = quoted(hit) + ([case.context.quote(path, case.context.text(path) or "(empty)")] if path else [])
    return Found(
        cause=why, evidence=evidence, fixes=fixes, verify=_CHECK, confidence=confidence, explains=("L10", "L4")
    )


_CHECK: Final = Words(
    '`python -c "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"` prints True and the number of cards',
    '`python -c "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"` 输出 True 和显卡数量',
)
_LINKS: Final[tuple[Callable[[Case, Hit], Found | None], ...]] = (
    _variable,
    _torch_build,
    _mismatch,
    _old_driver,
    _isolation,
    _no_driver,
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
        sees=PLACES,
    ),
)
