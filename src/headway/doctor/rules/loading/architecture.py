"""L4 and L5: the engine, or transformers, has no class for the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.exceptions import EXCEPTION, UMBRELLA
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.loading.missing_libraries import package_of
from headway.doctor.rules.loading.model_folder import model_place
from headway.doctor.rules.loading.outcome import of_the_model_runtime, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

UNSUPPORTED: Final = (
    sight(
        "Model architectures [",
        pattern=r"Model architectures \[(?P<names>[^\]]*)\] (?:are not supported|failed to be inspected)",
    ),
    sight("Unsupported architectures", pattern=r"Unsupported architectures?:? (?P<names>[\w, '\[\]]+)"),
    sight(
        "Model architecture ",
        pattern=r"Model architecture (?P<names>\w+) was supported in \w+ until (?P<until>v?[\d.]+)",
    ),
    sight("unknown model architecture", pattern=r"unknown model architecture: '(?P<names>[^']*)'"),
    sight(
        "Unknown architecture for",
        "Unsupported model architecture",
        pattern=r"(?:Unknown architecture for \w+|Unsupported model architecture)[: ]+(?P<names>\w+)",
    ),
    sight(
        "has no native implementation",
        "[unsupported_architecture]",
        pattern=r"architecture '?(?P<names>\w+)'? has no native implementation",
    ),
)
INSPECTION: Final = sight(
    "Error in inspecting model architecture", pattern=r"Error in inspecting model architecture '(?P<name>\w+)'"
)
_NOT_THE_CAUSE: Final = ("CalledProcessError", "ValidationError")


def engine_has_no_class(case: Case) -> Found | None:
    """An import that failed while the model's class was inspected is the cause; without one the name is really unknown."""
    inspected = case.log.first(INSPECTION)
    hit = case.log.first(*UNSUPPORTED) or inspected
    if hit is None or overcome(case, hit) or of_the_model_runtime(case):
        return None
    groups = hit.match.groupdict()
    name = re.sub(r"['\"\[\]]", "", groups.get("names") or groups.get("name") or "").strip(" ,")
    if broken := _failed_import(case, inspected, hit):
        return _import_failed(name, broken, quoted(inspected, hit))
    if inspected is not None or "failed to be inspected" in hit.line.text:
        return _inspection_failed(name, quoted(inspected, hit))
    until = groups.get("until") or ""
    place = model_place(case)
    llama = case.launch.program == "llama.cpp" or "unknown model architecture" in hit.line.text
    version = case.launch.version or case.context.text("versions.vllm")
    running = Words(f" (version {version})" if version else "", f"（版本 {version}）" if version else "")
    removed = Words(f"; it was supported until {until}", f"；它在 {until} 之前受支持") if until else Words("", "")
    where = f" {place}" if place else ""
    fixes = [
        Fix(
            Words(
                "run it with the generic implementation of transformers, if transformers has the class",
                "若 transformers 有该类，用其通用实现运行",
            ),
            f"vllm serve{where} --model-impl transformers" if place else "--model-impl transformers",
        ),
        Fix(
            Words(
                "or a newer version of the engine that supports it, or the plugin that its authors publish",
                "或使用支持它的更新引擎版本，或其作者发布的插件",
            ),
            "pip install -U vllm",
        ),
        Fix(Words("or another engine or another model of the task", "或改用其他引擎或完成同一任务的其他模型")),
    ]
    if llama:
        fixes = [
            Fix(
                Words("a newer llama.cpp build knows more architectures", "更新的 llama.cpp 支持更多架构"),
                "git -C llama.cpp pull && cmake -S llama.cpp -B llama.cpp/build && cmake --build llama.cpp/build -j",
            ),
            Fix(
                Words(
                    "or another engine that supports this architecture, with the original checkpoint",
                    "或用支持该架构的其他引擎加载原始检查点",
                )
            ),
        ]
    elif until:
        fixes.insert(
            0,
            Fix(
                Words("use the last version that supported it", "使用最后一个支持它的版本"),
                f"pip install vllm=={until.lstrip('v')}",
            ),
        )
    return Found(
        cause=Words(
            f"This engine{running.en} has no implementation of {name}{removed.en}. No import failed before, so nothing is broken: the architecture is unknown here, and no memory or access setting changes that.",
            f"当前引擎{running.zh}没有 {name} 的实现{removed.zh}。此前没有导入失败，说明并非损坏：这里就是不认识该架构，调整内存或权限设置都无济于事。",
        ),
        evidence=quoted(hit)
        + (
            [case.context.quote("model.config.architectures")] if case.context.has("model.config.architectures") else []
        ),
        fixes=fixes,
        verify=Words(
            f"`headway plan{where}` names the implementation that would be used, and the start passes `Resolved architecture`",
            f"`headway plan{where}` 给出将使用的实现，且启动能走过 `Resolved architecture`",
        ),
        confidence=STATED,
        explains=("L8",),
    )


def _failed_import(case: Case, inspected: Hit | None, refused: Hit) -> Hit | None:
    """The last exception of the chain that the inspection printed: the deepest import."""
    if inspected is None:
        return None
    umbrellas = {hit.line.number for hit in case.log.hits(UMBRELLA)}
    between = [
        hit
        for hit in case.log.hits(EXCEPTION)
        if hit.line.source == inspected.line.source
        and inspected.line.number <= hit.line.number
        and (hit.line.number < refused.line.number or refused is inspected)
        and hit.line.number not in umbrellas
        and hit["type"].rsplit(".", 1)[-1] not in _NOT_THE_CAUSE
        and "Error raised in subprocess" not in hit.line.text  # the frame around the exception that follows
    ]
    imports = [
        hit
        for hit in between
        if hit["type"].rsplit(".", 1)[-1]
        in ("ImportError", "ModuleNotFoundError", "OSError", "AttributeError", "RuntimeError")
    ]
    return next(iter(imports or between), None)


def _import_failed(name: str, broken: Hit, around: Sequence[Quote]) -> Found:
    message = broken["message"] or broken["type"]
    library = re.search(r"(?P<file>lib[\w.\-+]+\.so[\w.]*): cannot open shared object", message)
    module = re.search(r"No module named '(?P<name>[\w.]+)'", message)
    symbol = re.search(r"(?P<file>[\w.\-]+\.so)[\w.]*: undefined symbol", message)
    fixes: list[Fix] = []
    verify = Words(
        '`python -c "import vllm"` and the start pass `Resolved architecture`',
        '`python -c "import vllm"` 通过，且启动走过 `Resolved architecture`',
    )
    if library:
        package = package_of(library["file"])
        what = Words(f"the system library {library['file']} is not installed", f"系统库 {library['file']} 没有安装")
        brings = (
            package.brings
            if package
            else Words(f"the package that contains {library['file']}", f"包含 {library['file']} 的软件包")
        )
        fixes.append(
            Fix(
                Words(f"install {brings.en}: {library['file']}", f"安装 {brings.zh}：{library['file']}"),
                package.command
                if package
                else f"apt-get update && apt-get install -y apt-file && apt-file update && apt-file search {library['file']}",
            )
        )
        verify = Words(
            f"`ldconfig -p | grep {library['file']}` prints a line and the start passes `Resolved architecture`",
            f"`ldconfig -p | grep {library['file']}` 有输出，且启动走过 `Resolved architecture`",
        )
    elif module:
        root = module["name"].split(".")[0]
        what = Words(f"the Python module {module['name']} is not installed", f"Python 模块 {module['name']} 没有安装")
        fixes.append(Fix(Words(f"install {root}", f"安装 {root}"), f"pip install {root}"))
        verify = Words(f'`python -c "import {root}"` prints nothing', f'`python -c "import {root}"` 没有输出')
    elif symbol:
        what = Words(
            f"{symbol['file']} was built for another torch or CUDA (undefined symbol)",
            f"{symbol['file']} 是为另一个 torch 或 CUDA 构建的（未定义符号）",
        )
        root = symbol["file"].split(".")[0]
        fixes.append(
            Fix(
                Words(f"remove or rebuild {root} for the installed torch", f"卸载 {root}，或为已安装的 torch 重新构建"),
                f"pip uninstall -y {root}",
            )
        )
    elif found := re.search(r"operator (?P<package>torchvision|torchaudio)::\w+ does not exist", message):
        root = found["package"]
        what = Words(
            f"{root} was built for another torch ({found[0]})", f"{root} 是为另一个 torch 构建的（{found[0]}）"
        )
        fixes.append(
            Fix(
                Words(
                    f"reinstall {root} together with torch, so that both versions match",
                    f"将 {root} 与 torch 一起重装，使两者版本匹配",
                ),
                f"pip install --force-reinstall torch {root}",
            )
        )
        verify = Words(f'`python -c "import {root}"` prints nothing', f'`python -c "import {root}"` 没有输出')
    else:
        what = Words(f"its module raised {message[:160]}", f"其模块抛出 {message[:160]}")
        fixes.append(
            Fix(
                Words(
                    "repair that import first; run it alone to see the whole message",
                    "先修复该导入；单独运行以查看完整信息",
                ),
                'python -c "import vllm.model_executor.models.registry"',
            )
        )
    return Found(
        cause=Words(
            f"The implementation of {name} exists but could not be imported: {what.en}. `not supported` is only the consequence; neither another version nor another model is needed.",
            f"{name} 的实现存在，但导入失败：{what.zh}。“不支持”只是后果，不需要换版本或换模型。",
        ),
        evidence=[*quoted(broken), *around],
        fixes=fixes,
        verify=verify,
        confidence=STATED,
        title=Words("The model's module failed to import", "模型模块导入失败"),
        explains=("L10", "L8"),
    )


def _inspection_failed(name: str, around: Sequence[Quote]) -> Found:
    """The import failed, and its exception is not in the log."""
    return Found(
        cause=Words(
            f"The implementation of {name} exists but its module failed to import; the exception that says why is missing in this log. It is usually a missing system library or an extension built for another torch.",
            f"{name} 的实现存在，但其模块导入失败；说明原因的异常不在本日志中。通常是缺少系统库，或扩展是为另一个 torch 构建的。",
        ),
        evidence=around,
        fixes=[
            Fix(
                Words(
                    "run the import alone: it prints the exception to repair", "单独运行该导入：会打印需要修复的异常"
                ),
                'python -c "import vllm._C, vllm.model_executor.models.registry"',
            )
        ],
        verify=Words(
            "the import prints nothing, and the start passes `Resolved architecture`",
            "该导入没有输出，且启动走过 `Resolved architecture`",
        ),
        confidence=0.6,
        title=Words("The model's module failed to import", "模型模块导入失败"),
    )


UNRECOGNIZED: Final = sight(
    "but Transformers does not recognize this architecture",
    pattern=r"model type [`'\"]?(?P<type>[\w.\-]+)[`'\"]? but Transformers does not recognize this architecture",
)
# first release of transformers with the class
_SINCE: Final[dict[str, str]] = {
    "mistral": "4.34.0", "mixtral": "4.36.0", "phi": "4.36.0", "qwen2": "4.37.0", "gemma": "4.38.0", "starcoder2": "4.39.0", "qwen2_moe": "4.40.0", "cohere": "4.39.0",
    "dbrx": "4.40.0", "olmo": "4.40.0", "phi3": "4.41.0", "gemma2": "4.42.0", "nemotron": "4.44.0", "qwen2_vl": "4.45.0", "mllama": "4.45.0", "granite": "4.45.0",
    "olmoe": "4.45.0", "olmo2": "4.47.0", "cohere2": "4.48.0", "modernbert": "4.48.0", "qwen2_5_vl": "4.49.0", "gemma3": "4.50.0", "gemma3_text": "4.50.0",
    "mistral3": "4.50.0", "qwen3": "4.51.0", "qwen3_moe": "4.51.0", "llama4": "4.51.0", "deepseek_v3": "4.51.0", "glm4": "4.51.3", "qwen2_5_omni": "4.52.0",
    "falcon_h1": "4.53.0", "smollm3": "4.53.0", "gemma3n": "4.53.0", "glm4v": "4.53.0", "ernie4_5": "4.54.0", "ernie4_5_moe": "4.54.0", "exaone4": "4.54.0",
    "deepseek_v2": "4.54.0", "glm4_moe": "4.54.0", "lfm2": "4.54.0", "gpt_oss": "4.55.0", "glm4v_moe": "4.55.0", "seed_oss": "4.56.0", "hunyuan_v1_dense": "4.56.0",
    "apertus": "4.56.0", "qwen3_next": "4.57.0", "qwen3_vl": "4.57.0", "qwen3_vl_moe": "4.57.0", "qwen3_omni_moe": "4.57.0", "olmo3": "4.57.0",
}  # fmt: skip


def transformers_has_no_class(case: Case) -> Found | None:
    """The installed transformers is older than the model's type."""
    hit = case.log.first(UNRECOGNIZED)
    if hit is None or overcome(case, hit) or of_the_model_runtime(case):
        return None
    kind = hit["type"]
    installed = case.context.text("versions.transformers")
    since = _SINCE.get(kind, "")
    has = Words(f" {installed}" if installed else "", f" {installed}" if installed else "")
    came = (
        Words(f"; the class came with {since}", f"；该类从 {since} 开始提供")
        if since
        else Words(
            "; a newer version may have it, else the model brings code of its own",
            "；更新的版本可能已支持，否则该模型依赖自带代码",
        )
    )
    engine = case.launch.version or case.context.text("versions.vllm")
    asks = Words(
        f" The engine ({engine}) has to allow that version, otherwise it is upgraded as well." if engine else "",
        f"引擎（{engine}）需允许该版本，否则一并升级。" if engine else "",
    )
    return Found(
        cause=Words(
            f"The installed transformers{has.en} does not know the model type {kind}{came.en}. The files are not damaged.{asks.en}",
            f"已安装的 transformers{has.zh} 不认识模型类型 {kind}{came.zh}。文件并未损坏。{asks.zh}",
        ),
        evidence=quoted(hit) + ([case.context.quote("versions.transformers")] if installed else []),
        fixes=[
            Fix(
                Words("install a newer transformers that knows the type", "安装认识该类型的更新版 transformers"),
                f'pip install -U "transformers>={since}"' if since else "pip install -U transformers",
            ),
            Fix(
                Words(
                    "if the engine holds transformers back, upgrade both together",
                    "若引擎限制了 transformers 版本，则一起升级",
                ),
                "pip install -U vllm transformers",
            ),
        ],
        verify=Words(
            f"`python -c \"from transformers import AutoConfig; print(AutoConfig.from_pretrained('{model_place(case) or '.'}').model_type)\"` prints {kind}",
            f"`python -c \"from transformers import AutoConfig; print(AutoConfig.from_pretrained('{model_place(case) or '.'}').model_type)\"` 输出 {kind}",
        ),
        confidence=STATED,
        explains=("L8", "L4", "L6"),
    )


RULES: Final = (
    Rule(
        id="L4",
        title=Words("The engine has no implementation of this architecture", "引擎没有该架构的实现"),
        symptoms=Words(
            "`Model architectures [...] are not supported for now`, `unknown model architecture`",
            "`Model architectures [...] are not supported for now`、`unknown model architecture`",
        ),
        why=Words(
            "really unknown, or the module failed to import (`Error in inspecting model architecture` stands above)",
            "确实不认识，或模块导入失败（上方有 `Error in inspecting model architecture`）",
        ),
        needs=Words("the exceptions above the message", "该信息上方的异常"),
        remedy=Words(
            "repair the import; else another version, --model-impl transformers, a plugin, another engine",
            "修复导入；否则换版本、用 --model-impl transformers、插件或其他引擎",
        ),
        check=Words("import the module alone", "单独导入该模块"),
        judge=engine_has_no_class,
        sees=(*UNSUPPORTED, INSPECTION),
    ),
    Rule(
        id="L5",
        title=Words("transformers does not know the model type", "transformers 不认识该模型类型"),
        symptoms=Words(
            "`has model type X but Transformers does not recognize this architecture`",
            "`has model type X but Transformers does not recognize this architecture`",
        ),
        why=Words("the installed transformers is older than the architecture", "已安装的 transformers 比该架构旧"),
        needs=Words("the versions of transformers and of the engine", "transformers 与引擎的版本"),
        remedy=Words(
            "the transformers version that knows it, and an engine that allows it",
            "使用认识它的 transformers 版本，以及允许该版本的引擎",
        ),
        check=Words("AutoConfig loads", "AutoConfig 能加载"),
        judge=transformers_has_no_class,
        sees=(UNRECOGNIZED,),
    ),
)
