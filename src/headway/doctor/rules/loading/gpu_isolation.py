"""The links of a GPU that lie outside the process: the container, the scheduler, the driver's library."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.quoted import quoted
from headway.doctor.words import Words

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
KUBELET: Final = sight("kubelet", "Back-off restarting failed container", "CrashLoopBackOff")
# a check inside the container that saw no card
_BLIND: Final = re.compile(r"(?i)(?:container|pod|docker|inside).*(?:not found|no devices|no such|failed|no gpu)")


def not_let_in(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(CONTAINER) or case.log.first(NO_DRIVER)
    pods = re.search(r"(?i)insufficient nvidia\.com/gpu", hit.line.text)
    inside = case.context.get("host.in_container") is True or case.launch.command.startswith("docker")
    if pods:
        return found_broken(
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
    kubernetes, rocm = _in_kubernetes(case), "rocm" in case.context.text("versions.torch")
    if (kubernetes or rocm) and not toolkit:
        fixes = _IN_KUBERNETES if kubernetes else [_rocm(case.launch.command)]
        path = "host.in_container" if case.context.has("host.in_container") else ""
        return found_broken(case, why, seen or hit, fixes, 0.92, path)
    fixes = []
    if not gave or not toolkit:
        fixes.append(
            Fix(
                Words(
                    "start the container with the GPUs (docker: --gpus all)", "启动容器时传入 GPU（docker：--gpus all）"
                ),
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
    return found_broken(case, why, seen or hit, fixes, 0.92, path)


_IN_KUBERNETES: Final = [
    Fix(
        Words(
            "ask for the GPU in the pod's spec: only then one is passed in", "在 Pod 的 spec 中申请 GPU：申请后才会传入"
        ),
        "resources: {limits: {nvidia.com/gpu: 1}}",
    ),
    Fix(
        Words(
            "see that the node offers GPUs (device plugin) and that the runtime class passes them on",
            "确认节点提供 GPU（设备插件），且运行时类会传入 GPU",
        ),
        "kubectl get nodes -o custom-columns='NODE:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu'; kubectl get pods -A | grep nvidia-device-plugin",
    ),
]


def _in_kubernetes(case: Case) -> bool:
    return (
        bool(case.context.text("env.KUBERNETES_SERVICE_HOST"))
        or "kubectl" in case.launch.command
        or case.log.sees(KUBELET)
    )


def _rocm(command: str) -> Fix:
    option = "--device /dev/kfd --device /dev/dri --group-add video"
    return Fix(
        Words("start the container with the AMD GPUs", "启动容器时传入 AMD GPU"),
        command.replace("docker run", f"docker run {option}", 1) if "docker run" in command else option,
    )


def _with_gpus(command: str) -> str:
    """The command as given, with the GPUs; without one the option alone."""
    if "docker run" in command:
        return command.replace("docker run", "docker run --gpus all", 1)
    if "compose" in command:
        return "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}"
    return "--gpus all"


def no_driver(case: Case, hit: Hit) -> Found | None:
    seen = case.log.first(NO_DRIVER)
    if seen is None:
        return None
    return found_broken(
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


def found_broken(case: Case, why: Words, hit: Hit, fixes: list[Fix], confidence: float, path: str = "") -> Found:
    evidence = quoted(hit) + ([case.context.quote(path, case.context.text(path) or "(empty)")] if path else [])
    return Found(
        cause=why, evidence=evidence, fixes=fixes, verify=_CHECK, confidence=confidence, explains=("L10", "L4")
    )


_CHECK: Final = Words(
    '`python -c "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"` prints True and the number of cards',
    '`python -c "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"` 输出 True 和显卡数量',
)
