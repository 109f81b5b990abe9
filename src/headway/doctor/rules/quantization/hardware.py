"""The card, the dtype or the platform has no kernel for the format: Q3, Q4, Q15, Q20."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.device import capability
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

TOO_OLD: Final = sight(
    "not supported for the current GPU", "uantization scheme is not supported for", "torch._scaled_mm is only supported on",
    pattern=r"(?:quantization method (?P<method>[\w+-]+(?:\.\w[\w+-]*)*) is|[Qq]uantization scheme is) not supported for [', ]*the current GPU\.?(?:[', ]*Min(?:imum)? capability: (?P<least>\d+)\.?[', ]*Current capability: (?P<now>\d+))?"
    r"|(?P<maths>torch\._scaled_mm is only supported on CUDA devices)",
)  # fmt: skip
CAPABILITIES: Final = sight("apability: ", pattern=r"Min(?:imum)? capability: (?P<least>\d+)|Current capability: (?P<now>\d+)")
DTYPE: Final = sight(
    "is not supported for quantization method",
    pattern=r"torch\.(?P<dtype>\w+) is not supported for quantization method (?P<method>[\w+-]+(?:\.\w[\w+-]*)*)(?:\. Supported dtypes: \[(?P<dtypes>[^\]]*)\])?",
)
GROUP: Final = sight(
    "group_size", "group size", "Group size",
    pattern=r"(?<!\w)(?P<kernel>\w{0,60}?(?:[Mm]arlin|[Mm]achete|AllSpark|[Ee]xllama|ExLlama|GPTQ|AWQ|[Kk]ernel|CUTLASS)\w{0,60}) (?:does not support|doesn't support) group[_ ]size\w* ?[=:]? ?(?P<size>-?\d+)"
    r"(?:.*?[Oo]nly group[_ ]sizes? ?[=:] ?(?P<known>\[[^\]]*\]))?"
    r"|[Uu]nsupported group[_ ]size:? ?=? ?(?P<size2>-?\d+)|[Gg]roup[_ ]size \(?(?P<size3>-?\d+)\)? (?:is )?(?:not supported|not supported by|unsupported)(?: by (?P<by>\w+))?",
)  # fmt: skip
NO_KERNEL: Final = sight(
    "quantization is currently not supported in", "Failed to find a kernel that can implement", "object has no attribute", "No kernels are registered for",
    "this version reads unquantized safetensors and GGUF", "with arguments from the '",
    pattern=r"(?<![\w+.-])(?P<method>[\w+-]+(?:\.\w[\w+-]*)*) quantization is currently not supported in (?P<platform>\w+)|Failed to find a kernel that can implement the (?P<layer>[\w]+) linear layer"
    r"|Could not run '_\w+::(?P<call>\w+)' with arguments from the '(?P<backend>\w+)' backend"
    r"|'_OpNamespace' '_\w+' object has no attribute '(?P<op>\w*(?:awq|gptq|marlin|machete|scaled_mm|fp8|quant|cutlass|ggml|squeezellm)\w*)'|No kernels are registered for platform (?P<bare>\w+)"
    r"|is quantized with '(?P<ours>[\w+-]+(?:\.\w[\w+-]*)*)'; this version reads unquantized safetensors and GGUF",
)  # fmt: skip

# Smallest compute capability at which vLLM runs a format.
_LEAST: Final[dict[str, tuple[int, str]]] = {
    "gptq": (60, "GPTQ"), "gguf": (60, "GGUF (Headway or llama.cpp)"), "bitsandbytes": (70, "bitsandbytes"), "awq": (75, "AWQ"),
    "w8a8": (75, "int8 W8A8"), "gptq_marlin": (80, "GPTQ with Marlin kernels"), "fp8": (80, "FP8 weights (their arithmetic from 8.9)"),
}  # fmt: skip
_NATIVE_FP8: Final = 89
_HALF: Final = {"float16": "half", "bfloat16": "bfloat16", "float32": "float32"}


def dotted(number: int) -> str:
    return f"{number // 10}.{number % 10}"


def card_too_old(case: Case) -> Found | None:
    hit = case.log.first(TOO_OLD)
    if hit is None:
        return None
    gpu = case.device.gpu(0) or (case.device.gpus[0] if case.device.gpus else None)
    listed = case.log.hits(CAPABILITIES)
    least = int(hit["least"]) if hit["least"] else _NATIVE_FP8 if hit["maths"] else next((int(one["least"]) for one in listed if one["least"]), None)
    now = (
        int(hit["now"])
        if hit["now"]
        else (gpu.capability if gpu else None)
        or next((int(one["now"]) for one in listed if one["now"]), None)
        or capability(case.context.text("host.gpus.0.capability"))
    )
    method = hit["method"] or case.launch.value("quantization").replace("None", "") or case.model.claimed or case.model.named or "this scheme"
    name = gpu.name if gpu and gpu.name else "the card"
    have = f"{name} has {dotted(now)} ({now})" if now else f"{name} has less"
    have_zh = f"{name if gpu and gpu.name else '这张卡'} 为 {dotted(now)}（{now}）" if now else "这张卡更低"
    need = f"a compute capability of at least {dotted(least)} ({least})" if least else "a newer compute capability"
    need_zh = f"计算能力至少 {dotted(least)}（{least}）" if least else "更新的计算能力"
    return Found(
        cause=Words(
            f"The kernels of {method} need {need}, and {have}. No driver, memory or quantisation flag changes what the chip can do; the checkpoint is fine.",
            f"{method} 的内核要求{need_zh}，而{have_zh}。驱动、显存或量化参数都改变不了芯片能力；检查点没有问题。",
        ),
        evidence=[hit.quote(), *([case.context.quote(f"{gpu.path}.capability")] if gpu and gpu.capability else [])],
        fixes=_formats_for(case, method, now, least),
        verify=Words(
            "start again: the init line shows the new quantization= and a probe prompt is answered sanely",
            "重新启动：初始化行显示新的 quantization=，测试提示的回答正常",
        ),
        confidence=STATED,
    )


def _formats_for(case: Case, method: str, now: int | None, least: int | None) -> list[Fix]:
    own = method.lower().split("_")[0]
    names = [name for key, (from_, name) in _LEAST.items() if from_ <= (now if now is not None else 70) and not key.startswith(own)]
    shown = ", ".join(names) or "GGUF (llama.cpp)"
    at = f" {dotted(now)}" if now else ""
    fixes = [
        Fix(Words(f"take this model in another format that runs from capability{at} down: {shown}", f"换用计算能力{at} 可运行的其他格式：{shown}"))
    ]
    half, gpu = case.model.gib(16), case.device.gpu(0)
    if half is None or gpu is None or gpu.memory is None or half + 2 < gpu.memory * max(1, len(case.device.gpus)):
        size = f" (about {half:.1f} GiB of weights)" if half else ""
        dtype = "--dtype half" if now is not None and now < 80 else None
        fixes.append(
            Fix(
                Words(f"or the unquantized model in half precision{size}", f"或使用未量化的半精度模型{f'（权重约 {half:.1f} GiB）' if half else ''}"),
                dtype,
            )
        )
    fixes.append(
        Fix(
            Words(
                f"or another card: capability {dotted(least)} or newer" if least else "or a newer GPU",
                f"或换一张计算能力 {dotted(least)} 或更高的 GPU" if least else "或换更新的 GPU",
            )
        )
    )
    return fixes


def dtype_not_for_method(case: Case) -> Found | None:
    hit = case.log.first(DTYPE)
    if hit is None:
        return None
    supported = re.findall(r"torch\.(\w+)", hit["dtypes"]) or ["float16"]
    best = "float16" if "float16" in supported else supported[0]
    version = case.launch.version
    old = (
        f"; {version} is an old version, newer ones have kernels for more dtypes"
        if version.startswith("0.") and version.split(".")[1:2] and version.split(".")[1].isdigit() and int(version.split(".")[1]) < 8
        else ""
    )
    return Found(
        cause=Words(
            f"The kernels of {hit['method']} in this version{f' ({version})' if version else ''} compute in {', '.join(supported)} only, and the model's dtype is {hit['dtype']}{old}. The weights themselves are 4 or 8 bit; only the activations change.",
            f"此版本{f'（{version}）' if version else ''}的 {hit['method']} 内核只支持 {'、'.join(supported)}，而模型的 dtype 是 {hit['dtype']}{'；这是旧版本，新版本支持更多 dtype' if old else ''}。权重本身是 4 或 8 位，变的只是激活的类型。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(Words(f"compute in {best}", f"用 {best} 计算"), f"--dtype {_HALF.get(best, best)}"),
            Fix(
                Words(
                    f"or upgrade the engine: newer versions run {hit['method']} in {hit['dtype']} too",
                    f"或升级引擎（upgrade）：新版本的 {hit['method']} 也支持 {hit['dtype']}",
                ),
                "pip install -U vllm" if case.launch.program == "vllm" else None,
            ),
        ],
        verify=Words(
            f"start again: the init line shows dtype=torch.{best}, and a probe prompt is answered sanely (no `!!!!`)",
            f"重新启动：初始化行显示 dtype=torch.{best}，测试提示回答正常（没有 `!!!!`）",
        ),
        confidence=STATED,
    )


def group_without_kernel(case: Case) -> Found | None:
    hit = case.log.first(GROUP)
    if hit is None:
        return None
    size = hit["size"] or hit["size2"] or hit["size3"]
    known = re.findall(r"-?\d+", hit["known"])
    good = ", ".join(known) if known else "128"
    kernel = hit["kernel"] or hit["by"] or "the kernel"
    column = " (-1 = one scale per column)" if size == "-1" else ""
    column_zh = "（-1 = 每列一个 scale）" if size == "-1" else ""
    return Found(
        cause=Words(
            f"The checkpoint is quantised in groups of {size}{column}, and {kernel} has no code for that; it knows {good}. The memory and the dtype are not the reason.",
            f"检查点的量化组大小是 {size}{column_zh}，而 {kernel} 没有对应的代码，只支持 {good}。与显存和 dtype 无关。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words(
                    f"take, or make, a checkpoint with a group size of {'128' if '128' in known or not known else known[0]}",
                    f"使用或制作组大小为 {'128' if '128' in known or not known else known[0]} 的检查点",
                )
            ),
            Fix(
                Words(
                    "or another format of this model (compressed-tensors W4A16, FP8, GGUF)",
                    "或该模型的其他格式（compressed-tensors W4A16、FP8、GGUF）",
                )
            ),
        ],
        verify=Words("the load line appears, and a probe prompt is answered sanely", "出现加载行，测试提示的回答正常"),
        confidence=0.9,
    )


def no_kernel_here(case: Case) -> Found | None:
    hit = case.log.first(NO_KERNEL)
    if hit is None:
        return None
    op = hit["op"] or hit["call"]
    method = hit["method"] or hit["ours"] or case.launch.value("quantization").replace("None", "") or case.model.claimed or hit["layer"] or op
    platform = (hit["platform"] or hit["bare"] or hit["backend"] or case.device.kind or "this platform").lower()
    what = (
        f"the build has no operation {op}"
        if op
        else f"no kernel can do the {hit['layer']} layers"
        if hit["layer"]
        else f"{method} has no kernel"
    )
    what_zh = f"该构建没有算子 {op}" if op else f"没有内核能实现 {hit['layer']} 线性层" if hit["layer"] else f"{method} 没有内核"
    ours = bool(hit["ours"])
    refused = hit["method"] or case.launch.value("quantization").replace("None", "") or case.model.claimed or method
    fixes = [
        Fix(
            Words("serve the unquantised safetensors of this model, or a GGUF file of it", "使用该模型未量化的 safetensors，或它的 GGUF 文件")
            if ours
            else Words(
                f"take this model in another format that runs on {platform}: {_formats_on(platform, refused)}",
                f"换用能在 {platform} 上运行的其他格式：{_formats_on(platform, refused)}",
            )
        )
    ]
    if platform == "cpu" and not ours:
        fixes.append(Fix(Words("on a CPU also a GGUF file with Headway or llama.cpp", "在 CPU 上也可用 Headway 或 llama.cpp 运行 GGUF 文件")))
    if op:
        fixes.append(
            Fix(
                Words(
                    "if the format should run here, reinstall the engine's wheel that was built for this platform",
                    "若该格式本应可用，请重装为此平台构建的引擎包",
                )
            )
        )
    return Found(
        cause=Words(
            f"On {platform} {what}{' in this version of Headway' if ours else ''}: the checkpoint is whole, and the platform is the limit. Memory settings do not matter here.",
            f"在 {platform} 上{what_zh}{'（当前 Headway 版本）' if ours else ''}：检查点是完整的，限制在平台。与显存设置无关。",
        ),
        evidence=[hit.quote()],
        fixes=fixes,
        verify=Words(
            "the load line appears (`Model loading took`), and a probe prompt is answered sanely",
            "出现加载行（`Model loading took`），测试提示的回答正常",
        ),
        # on CUDA a missing operation is rather a build that does not match
        confidence=STATED if hit["platform"] or ours else 0.7 if op and platform == "cuda" else 0.85,
        explains=("L10",) if op and platform != "cuda" else (),
    )


def _formats_on(platform: str, refused: str) -> str:
    """What vLLM runs there, without the format that was refused."""
    formats = {
        "cpu": ("int8 W8A8 or W4A16 of compressed-tensors", "AWQ", "GPTQ"),
        "rocm": ("FP8 (MI300 and newer)", "GPTQ", "W4A16 of compressed-tensors"),
    }.get(platform, ("W4A16 of compressed-tensors", "FP8", "GPTQ"))
    others = [name for name in formats if not re.match(rf"{re.escape(refused.split('_')[0].split('-')[0])}\b", name, re.IGNORECASE)]
    return ", ".join([*others, "or bfloat16"])


RULES: Final = (
    Rule(
        id="Q3",
        title=Words("The card is too old for the format", "显卡太旧，不支持该量化格式"),
        symptoms=Words(
            "`The quantization method X is not supported for the current GPU. Minimum capability: a. Current capability: b`",
            "`The quantization method X is not supported for the current GPU. Minimum capability: a. Current capability: b`",
        ),
        why=Words("the kernels use instructions that the chip does not have", "内核使用了芯片没有的指令"),
        needs=Words("capability of the card", "显卡的计算能力"),
        remedy=Words(
            "a format whose minimum is at most b, unquantised half precision, or another card", "最低要求不超过 b 的格式、未量化半精度，或换卡"
        ),
        check=Words("the start passes and a probe prompt is sane", "启动通过，测试提示回答正常"),
        judge=card_too_old,
        sees=(TOO_OLD, CAPABILITIES),
        explains=("Q20",),
    ),
    Rule(
        id="Q4",
        title=Words("The dtype does not go with the method", "dtype 与量化方法不兼容"),
        symptoms=Words("`torch.bfloat16 is not supported for quantization method`", "`torch.bfloat16 is not supported for quantization method`"),
        why=Words("old kernels compute in float16 only", "旧内核只支持 float16"),
        needs=Words("the supported dtypes in the message", "报错中列出的 dtype"),
        remedy=Words("--dtype half, or a newer version", "--dtype half，或更新版本"),
        check=Words("the start passes and a probe prompt is sane", "启动通过，测试提示回答正常"),
        judge=dtype_not_for_method,
        sees=(DTYPE,),
    ),
    Rule(
        id="Q15",
        title=Words("No kernel for this group size", "没有该组大小的内核"),
        symptoms=Words(
            "`Marlin does not support group_size = 32`, `unsupported group size`",
            "`Marlin does not support group_size = 32`、`unsupported group size`",
        ),
        why=Words("kernels exist for few group sizes", "内核只覆盖少数组大小"),
        needs=Words("group_size of the configuration", "配置中的 group_size"),
        remedy=Words("a checkpoint with a group size of 128, or another format", "组大小 128 的检查点，或其他格式"),
        check=Words("the load line and a probe prompt", "加载行与测试提示"),
        judge=group_without_kernel,
        sees=(GROUP,),
        explains=("Q20",),
    ),
    Rule(
        id="Q20",
        title=Words("No kernel for this format on this platform", "该平台没有此格式的内核"),
        symptoms=Words(
            "`X quantization is currently not supported in rocm`, `Failed to find a kernel that can implement the X linear layer`, an operation missing in `_C`",
            "`X quantization is currently not supported in rocm`、`Failed to find a kernel that can implement the X linear layer`、`_C` 中缺少算子",
        ),
        why=Words("kernels are written per platform", "内核按平台编写"),
        needs=Words("platform, method", "平台、方法"),
        remedy=Words("another format", "其他格式"),
        check=Words("the load line and a probe prompt", "加载行与测试提示"),
        judge=no_kernel_here,
        sees=(NO_KERNEL,),
    ),
)
