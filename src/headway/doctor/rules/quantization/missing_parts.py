"""Something that quantised weights need is not there: their configuration (Q5), a library (Q18)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.quantization.method_choice import without_flag
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_CONFIG: Final = sight("Cannot find the config file for", pattern=r"Cannot find the config file for (?P<method>[\w+-]+(?:\.\w[\w+-]*)*)")
TWO_CONFIGS: Final = sight(
    "Found multiple config files for", pattern=r"Found multiple config files for (?P<method>[\w+-]+(?:\.\w[\w+-]*)*): (?P<files>.*)"
)
_FILES: Final = {"gptq": "quantize_config.json", "awq": "quant_config.json", "squeezellm": "quant_config.json"}
_PACKAGES: Final = {
    "compressed_tensors": "compressed-tensors", "gptqmodel": "gptqmodel", "auto_gptq": "auto-gptq", "awq": "autoawq", "awq_ext": "autoawq-kernels",
    "bitsandbytes": "bitsandbytes", "optimum": "optimum", "torchao": "torchao", "quark": "amd-quark", "hqq": "hqq", "eetq": "eetq", "aqlm": "aqlm",
    "auto_round": "auto-round", "gguf": "gguf", "modelopt": "nvidia-modelopt", "exllamav2": "exllamav2", "llmcompressor": "llmcompressor", "vptq": "vptq",
    "fbgemm_gpu": "fbgemm-gpu", "fp_quant": "fp-quant", "neural_compressor": "neural-compressor",
}  # fmt: skip
_MODULES: Final = "|".join(_PACKAGES)
_NAMES: Final = "|".join(sorted({*_PACKAGES.values(), *_PACKAGES}, key=len, reverse=True))
NO_LIBRARY: Final = sight(
    "No module named", "lease install", "library, which was not found", "is not installed", "pip install",
    pattern=rf"No module named ['\"](?P<module>{_MODULES})(?:\.\w+)*['\"]|requires the [`'\"](?P<library>{_NAMES})[`'\"] library"
    rf"|[Pp]lease install [`'\"]?(?P<wanted>{_NAMES})(?P<version>(?:[<>=~!]=?\s?[\d.]+)?)(?![\w-])|(?P<absent>{_NAMES}) (?:is not installed|package is not installed)",
)  # fmt: skip


def missing_configuration(case: Case) -> Found | None:
    two = case.log.first(TWO_CONFIGS)
    if two is not None:
        return Found(
            cause=Words(
                f"More than one file says how {two['method']} was used ({two['files'][:160]}), and they may differ; the engine does not choose.",
                f"有多个文件说明 {two['method']} 的用法（{two['files'][:160]}），内容可能不同，引擎不会替你选。",
            ),
            evidence=[two.quote()],
            fixes=[
                Fix(Words("keep the file that belongs to these weights and remove or rename the other", "保留属于这些权重的文件，删除或改名另一个"))
            ],
            verify=Words(
                "start again: the init line shows quantization= and a probe prompt is sane", "重新启动：初始化行显示 quantization=，测试提示正常"
            ),
            confidence=STATED,
            title=Words("Two quantization config files", "有两个量化配置文件"),
        )
    hit = case.log.first(NO_CONFIG)
    if hit is None:
        return None
    method = hit["method"]
    file = _FILES.get(method.split("_")[0], "quantize_config.json")
    names = [str(row.get("name", "")) for row in case.context.items("model.files") if isinstance(row, dict)]
    evidence = [hit.quote(), *([case.context.quote("model.files", ", ".join(names)[:200])] if names else [])]
    plain = _is_plain(case)
    if plain:
        return Found(
            cause=Words(
                f"--quantization {method} was given for a model whose files are not quantised: there is no {file} or quantization_config, because nothing was quantised. The flag does not quantise; it only reads.",
                f"给一个并未量化的模型加了 --quantization {method}：没有 {file} 或 quantization_config，因为根本没有量化过。该参数只读取，不做量化。",
            ),
            evidence=evidence,
            fixes=[
                Fix(
                    Words("drop the flag --quantization and serve the model as it is", "去掉 --quantization 参数，按原样提供模型"),
                    without_flag(case.launch.command),
                ),
                Fix(
                    Words(
                        f"or name a repository that holds {method.upper()} weights, with its {file} or quantization_config",
                        f"或改用含 {method.upper()} 权重的仓库，带有 {file} 或 quantization_config",
                    )
                ),
            ],
            verify=Words("start again: `Model loading took` appears and a probe prompt is sane", "重新启动：出现 `Model loading took`，测试提示正常"),
            confidence=0.9,
        )
    bits = case.model.named_bits
    shown = f", among {', '.join(names[:6])}" if names else ""
    shown_zh = f"（现有 {', '.join(names[:6])}）" if names else ""
    body = _config_text(method, bits)
    return Found(
        cause=Words(
            f"The weights are read as {method}, and no file says with which bits, group size and order they were made: {file} (or quantization_config in config.json) is missing{shown}. The weights themselves are there.",
            f"权重按 {method} 读取，但没有文件说明位数、组大小和顺序：缺少 {file}（或 config.json 中的 quantization_config）{shown_zh}。权重本身是在的。",
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words(
                    f"copy the missing {file} from the repository that made these weights into the model folder",
                    f"从制作这些权重的仓库把缺少的 {file} 复制到模型目录",
                ),
                f"hf download {case.model.name} {file}" if re.fullmatch(r"[\w.-]+/[\w.-]+", case.model.name) else None,
            ),
            Fix(
                Words(
                    f"or create {file} with the values that were really used"
                    + (f" ({bits} bits by the name; group size and act order as quantised)" if bits else " (bits, group size, act order)"),
                    f"或按实际使用的值创建 {file}"
                    + (f"（名称显示 {bits} 位；组大小与 act order 按量化时的设置）" if bits else "（bits、group size、act order）"),
                ),
                body,
            ),
        ],
        verify=Words(
            f"start again: the init line shows quantization={method}, and a probe prompt is sane (wrong values give garbage)",
            f"重新启动：初始化行显示 quantization={method}，测试提示正常（值不对会输出乱码）",
        ),
        confidence=STATED,
    )


def _is_plain(case: Case) -> bool:
    """Neither the name nor a tensor is quantised, and the files, if known, are as large as two bytes per parameter."""
    model = case.model
    if model.named or model.packed or model.claim:
        return False
    full = model.gib(16)
    if model.stored is not None and full is not None:
        return model.stored.value > 0.8 * full
    return bool(model.tensors) or model.stored is None


def _config_text(method: str, bits: int | None) -> str | None:
    if bits is None:
        return None
    if method.startswith("squeezellm"):
        return f'{{"wbits": {bits}}}'
    if method.startswith("awq"):
        return f'{{"w_bit": {bits}, "q_group_size": 128, "zero_point": true, "version": "GEMM"}}'
    return f'{{"bits": {bits}, "group_size": 128, "desc_act": false, "sym": true}}'


def missing_library(case: Case) -> Found | None:
    hit = case.log.first(NO_LIBRARY)
    if hit is None or case.startup.ready:
        return None
    name = hit["module"] or hit["library"] or hit["wanted"] or hit["absent"]
    package = _PACKAGES.get(name, name)
    later = next((one["version"] for one in case.log.hits(NO_LIBRARY) if one["version"]), "").replace(" ", "")
    wanted = f"{package}{later}"
    command = f"python -m pip install '{wanted}'" if later else f"python -m pip install {package}"
    return Found(
        cause=Words(
            f"The weights need the Python library {package}{f' ({later})' if later else ''} to be read, and the environment that runs the engine does not have it. The first missing import is the cause; later errors repeat it.",
            f"读取这些权重需要 Python 库 {package}{f'（{later}）' if later else ''}，而运行引擎的环境中没有。最早缺失的导入是原因，后面的报错只是重复。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words(
                    f"install {package} into the environment (or image) that runs the engine", f"在运行引擎的环境（或镜像）中安装（install）{package}"
                ),
                command,
            ),
            Fix(Words("or use a checkpoint in a format that needs no extra library", "或使用不需要额外库的格式的检查点")),
        ],
        verify=Words(
            f'`python -c "import {name.replace("-", "_")}"` prints nothing, and the start passes',
            f'`python -c "import {name.replace("-", "_")}"` 无输出，启动通过',
        ),
        confidence=STATED,
    )


RULES: Final = (
    Rule(
        id="Q5",
        title=Words("The quantization configuration is missing", "缺少量化配置文件"),
        symptoms=Words("`Cannot find the config file for X`", "`Cannot find the config file for X`"),
        why=Words("packed weights do not say how they were packed", "打包的权重自己不说明打包方式"),
        needs=Words("the files of the model, the values used", "模型文件、使用的值"),
        remedy=Words(
            "add quantize_config.json or quant_config.json with bits, group size, act order",
            "补上 quantize_config.json 或 quant_config.json（bits、group size、act order）",
        ),
        check=Words("the start passes and a probe prompt is sane", "启动通过，测试提示正常"),
        judge=missing_configuration,
        sees=(NO_CONFIG, TWO_CONFIGS),
    ),
    Rule(
        id="Q18",
        title=Words("A library for the format is missing", "缺少读取该格式的库"),
        symptoms=Words(
            "`No module named 'compressed_tensors'`, gptqmodel, bitsandbytes", "`No module named 'compressed_tensors'`、gptqmodel、bitsandbytes"
        ),
        why=Words("formats are read by libraries that are not always installed", "有些格式由并非默认安装的库读取"),
        needs=Words("the name of the library", "库名"),
        remedy=Words("install it", "安装它"),
        check=Words("import it alone", "单独导入"),
        judge=missing_library,
        sees=(NO_LIBRARY,),
        explains=("L10",),
    ),
)
