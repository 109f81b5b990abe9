"""L10: a compiled extension or an optional module that does not fit what is installed."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.loading.missing_libraries import package_of
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SYMBOL: Final = sight(
    "undefined symbol",
    pattern=r"(?<![\w.\-+])(?P<file>[\w.\-+]{1,120}\.so[\w.]{0,20}): undefined symbol: (?P<symbol>\w+)",
)
LIBRARY: Final = sight(
    "cannot open shared object file",
    pattern=r"(?P<file>lib[\w.\-+]{1,80}\.so[\w.]{0,20}): cannot open shared object file",
)
MODULE: Final = sight(
    "No module named",
    pattern=r"No module named ['\"]?(?P<module>(?:flash_attn|flashinfer|xformers|vllm_flash_attn|vllm\._C|vllm\._moe_C|deep_gemm|deepgemm|triton|sgl_kernel|apex|transformer_engine|causal_conv1d|mamba_ssm|fla|bitsandbytes|auto_gptq|awq|deep_ep|pplx_kernels|cupy|torch|torchvision|torchaudio|numpy)(?:[\w.]*))",
)
ASKED_FOR: Final = sight(
    "not found in your environment: ",
    pattern=r"packages that were not found in your environment: (?P<module>\w+)(?P<more>(?:, \w+)*)",
)
OPERATORS: Final = sight(
    "_OpNamespace", pattern=r"'_OpNamespace' '(?P<space>\w+)' object has no attribute '(?P<op>\w+)'"
)
OLD_SYSTEM: Final = sight(
    "version `GLIBC", pattern=r"version `(?P<version>GLIBC(?:XX)?_[\d.]+)' not found \(required by (?P<file>[^)]+)\)"
)
NO_OPERATOR: Final = sight("operator torchvision::nms does not exist")

# distribution that brings the module, where the names differ
_DISTRIBUTIONS: Final[dict[str, str]] = {
    "flash_attn": "flash-attn", "flash_attn_2_cuda": "flash-attn", "flash_attn_3": "flash-attn", "flashinfer": "flashinfer-python", "vllm_flash_attn": "vllm", "vllm": "vllm",
    "_C": "vllm", "_moe_C": "vllm", "_vllm_fa2_C": "vllm", "_vllm_fa3_C": "vllm", "sgl_kernel": "sgl-kernel", "common_ops": "sgl-kernel", "auto_gptq": "auto-gptq", "awq": "autoawq",
    "awq_ext": "autoawq", "causal_conv1d": "causal-conv1d", "causal_conv1d_cuda": "causal-conv1d", "mamba_ssm": "mamba-ssm", "selective_scan_cuda": "mamba-ssm",
    "transformer_engine": "transformer-engine", "deep_gemm": "deep-gemm", "fla": "flash-linear-attention",
}  # fmt: skip
_OPTIONAL: Final = (
    "flash-attn",
    "flashinfer-python",
    "xformers",
    "deep-gemm",
    "apex",
    "causal-conv1d",
    "transformer-engine",
    "auto-gptq",
    "autoawq",
    "bitsandbytes",
)
# libraries of the driver: not an extension's fault
_OF_THE_DRIVER: Final = ("libcuda.so", "libnvidia-ml.so", "libamdhip", "libhsa")


def extension_is_broken(case: Case) -> Found | None:
    """Only what ended a process counts: an optional module that a warning says is missing is no fault."""
    hit = _fatal(case, (SYMBOL, LIBRARY, MODULE, ASKED_FOR, OPERATORS, OLD_SYSTEM, NO_OPERATOR))
    if hit is None or of_the_model_runtime(case):
        return None
    groups = {name: value or "" for name, value in hit.match.groupdict().items()}
    torch = case.context.text("versions.torch")
    file = groups.get("file", "")
    module = groups.get("module", "") or ("vllm._C" if groups.get("space") else "")
    stem = module or file
    if (
        file
        and (  # the folder of the package says more than the name of a file in it
            inside := re.search(r"(?:site|dist)-packages/(\w+)/", hit.line.text[: hit.match.start("file")])
        )
    ):
        stem = inside[1]
    if inside := re.search(r"/(?:site|dist)-packages/(\w+)/", file):
        stem = inside[1]
    root = module if module.startswith("vllm.") else stem.split(".")[0]
    if hit.match.re is NO_OPERATOR.pattern:
        root = "torchvision"
    distribution = _DISTRIBUTIONS.get(root.removeprefix("vllm."), root.replace("_", "-"))
    built, quotes = _built_for(case, distribution, root)
    with_torch = Words(f" (installed: torch {torch})" if torch else "", f"（已安装 torch {torch}）" if torch else "")
    optional = distribution in _OPTIONAL
    fixes: list[Fix] = []
    verify = Words(
        f'`python -c "import {root if not root.startswith("_") else "vllm._C"}"` prints nothing',
        f'`python -c "import {root if not root.startswith("_") else "vllm._C"}"` 没有输出',
    )
    if hit.match.re is LIBRARY.pattern and _toolkit(file) is None:
        package = package_of(file)
        why = Words(
            f"The shared library {file} is not installed, and a compiled module needs it.",
            f"共享库 {file} 没有安装，而某个编译模块需要它。",
        )
        brings = package.brings if package else Words(f"the package that contains {file}", f"包含 {file} 的软件包")
        fixes.append(
            Fix(
                Words(f"install {brings.en} ({file})", f"安装 {brings.zh}（{file}）"),
                package.command
                if package
                else f"apt-get update && apt-get install -y apt-file && apt-file update && apt-file search {file}",
            )
        )
        verify = Words(f"`ldconfig -p | grep {file}` prints a line", f"`ldconfig -p | grep {file}` 有输出")
    elif hit.match.re is LIBRARY.pattern:
        toolkit = _toolkit(file)
        why = Words(
            f"A compiled module wants {file}{f' of CUDA {toolkit}' if toolkit else ''}, which is not installed{with_torch.en}: it was built for another CUDA version than this torch.",
            f"某个编译模块需要 {file}{f'（CUDA {toolkit}）' if toolkit else ''}，但没有安装{with_torch.zh}：它是为另一个 CUDA 版本构建的，与当前 torch 不符。",
        )
        fixes.append(
            Fix(
                Words(
                    "install the build of the package that matches this torch and CUDA, in a fresh environment",
                    "在全新环境中安装与当前 torch、CUDA 匹配的构建版本",
                ),
                "python -m venv fresh && fresh/bin/pip install vllm",
            )
        )
        verify = Words('`python -c "import vllm._C"` prints nothing', '`python -c "import vllm._C"` 没有输出')
    elif hit.match.re is OLD_SYSTEM.pattern:
        why = Words(
            f"{stem} was built on a newer system: it needs {groups['version']}, which the C library of this system or image does not have.",
            f"{stem} 是在更新的系统上构建的：需要 {groups['version']}，而本系统或镜像的 C 库没有。",
        )
        fixes += [
            Fix(
                Words(
                    "use an image with a newer base system, or build the package from source here",
                    "使用基础系统更新的镜像，或在本机从源码构建该包",
                ),
                f"pip install --no-binary {distribution} {distribution}",
            )
        ]
        verify = Words(
            f"`strings $(ldconfig -p | awk '/libstdc\\+\\+|libc.so/{{print $NF; exit}}') | grep {groups['version']}` prints it",
            f"`strings $(ldconfig -p | awk '/libstdc\\+\\+|libc.so/{{print $NF; exit}}') | grep {groups['version']}` 有输出",
        )
    elif module and hit.match.re in (MODULE.pattern, ASKED_FOR.pattern) and not root.startswith("vllm."):
        need = Words(
            " It is optional: the engine has attention kernels of its own, and there is no flag to disable it."
            if optional
            else "",
            "它是可选的：引擎自带注意力内核，也不存在用于禁用它的参数。" if optional else "",
        )
        why = Words(
            f"The Python module {module} is not installed{with_torch.en}, and something asks for it.{need.en}",
            f"Python 模块 {module} 没有安装{with_torch.zh}，而有代码要求导入它。{need.zh}",
        )
        if distribution == "flash-attn":
            fixes.append(
                Fix(
                    Words("choose an attention backend that does not need it", "选择不需要它的注意力后端"),
                    "--attention-backend TRITON_ATTN",
                )
            )
        fixes.append(
            Fix(
                Words(
                    f"install {distribution} in the version that matches this torch",
                    f"安装与当前 torch 匹配的 {distribution}",
                ),
                f"pip install {distribution}{groups.get('more', '').replace(',', '')}",
            )
        )
    else:
        since = Words(f" ({built})" if built else "", f"（{built}）" if built else "")
        need = Words(
            " The package is optional; there is no flag that disables it." if optional else "",
            "该包是可选的；不存在用于禁用它的参数。" if optional else "",
        )
        why = Words(
            f"The compiled extension {distribution}{since.en} does not match the installed torch{' ' + torch if torch else ''}: ABI mismatch, it was built for another version"
            + (f" (undefined symbol {groups['symbol'][:60]})" if groups.get("symbol") else "") + f".{need.en}",
            f"编译扩展 {distribution}{since.zh} 与已安装的 torch{' ' + torch if torch else ''} 不匹配：ABI 不一致，它是为另一个版本构建的"
            + (f"（未定义符号 {groups['symbol'][:60]}）" if groups.get("symbol") else "") + f"。{need.zh}",
        )  # fmt: skip
        if optional:
            fixes.append(
                Fix(
                    Words(f"remove {distribution}: it is not needed", f"卸载 {distribution}：并不需要它"),
                    f"pip uninstall -y {distribution}",
                )
            )
            fixes.append(
                Fix(
                    Words(
                        "or rebuild it against the installed torch (a matching wheel)",
                        "或针对已安装的 torch 重新构建（匹配的 wheel）",
                    ),
                    f"pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps {distribution}",
                )
            )
            if "flash" in distribution:
                fixes.append(
                    Fix(
                        Words("or choose another attention backend", "或选择其他注意力后端"),
                        "--attention-backend TRITON_ATTN",
                    )
                )
        else:
            fixes.append(
                Fix(
                    Words(
                        f"install {distribution} in the build that matches this torch, best in a fresh environment",
                        f"安装与当前 torch 匹配的 {distribution} 构建，最好在全新环境中",
                    ),
                    f"pip install --force-reinstall {distribution}",
                )
            )
        if distribution == "vllm":
            verify = Words(
                '`python -c "import vllm._C"` prints nothing, outside the source folder of vLLM',
                '在 vLLM 源码目录之外，`python -c "import vllm._C"` 没有输出',
            )
    return Found(
        cause=why,
        evidence=quoted(hit) + ([case.context.quote("versions.torch")] if torch else []) + quotes,
        fixes=fixes,
        verify=verify,
        confidence=STATED,
    )


def _fatal(case: Case, sights: tuple[Sight, ...]) -> Hit | None:
    for hit in case.log.hits(*sights):
        groups = hit.match.groupdict()
        if (groups.get("file") or "").startswith(_OF_THE_DRIVER):
            continue
        if (
            not only_a_warning(hit)
            and not overcome(case, hit)
            and not re.search(r"(?i)warning|\bwarn\b", hit.line.text[: hit.match.start()])
        ):
            return _behind(case, hit)
    return None


def _behind(case: Case, hit: Hit) -> Hit:
    """An operator of vLLM's extension is missing because its library was not loaded; the warning before it says why."""
    if hit.match.re is not OPERATORS.pattern:
        return hit
    why = (earlier for earlier in case.log.hits(SYMBOL, LIBRARY) if earlier.line.number < hit.line.number)
    return next((earlier for earlier in why if "vllm" in earlier.line.text), hit)


def _toolkit(file: str) -> str | None:
    """The CUDA version that a library of the toolkit belongs to, "" when it does not say, None for other libraries."""
    if not re.match(
        r"lib(?:cudart|cublas|cublasLt|cudnn|cufft|cusparse|cusolver|nvrtc|nvJitLink|nccl|torch\w*|c10\w*)\b", file
    ):
        return None
    found = re.search(r"\.so\.(\d+)", file)
    return found[1] if found and file.startswith(("libcudart", "libcublas", "libnvrtc")) else ""


def _built_for(case: Case, distribution: str, root: str) -> tuple[str, list[Quote]]:
    for name in (distribution.replace("-", "_"), root, distribution):
        if text := case.context.text(f"versions.{name}"):
            return f"{text}", [case.context.quote(f"versions.{name}")]
    return "", []


RULES: Final = (
    Rule(
        id="L10",
        title=Words("A compiled extension does not fit", "编译扩展不匹配"),
        symptoms=Words(
            "`undefined symbol`, `cannot open shared object file`, `No module named flash_attn`",
            "`undefined symbol`、`cannot open shared object file`、`No module named flash_attn`",
        ),
        why=Words(
            "it was built for another torch or CUDA, or a system library is missing; optional packages are not needed",
            "它是为另一个 torch 或 CUDA 构建的，或缺少系统库；可选包并非必需",
        ),
        needs=Words("the versions of both sides", "两边的版本"),
        remedy=Words(
            "remove it, the wheel for this torch, or another attention backend",
            "卸载它、安装匹配当前 torch 的 wheel，或换注意力后端",
        ),
        check=Words('`python -c "import X"`', '`python -c "import X"`'),
        judge=extension_is_broken,
        sees=(SYMBOL, LIBRARY, MODULE, ASKED_FOR, OPERATORS, OLD_SYSTEM, NO_OPERATOR),
    ),
)
