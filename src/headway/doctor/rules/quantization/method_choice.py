"""The method of the flag, of the checkpoint and of the program do not go together: Q1, Q2, Q12."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

MISMATCH: Final = sight(
    "does not match the quantization method", "specified in the `quantization`", "specified in the quantization argument",
    pattern=r"model config \((?P<stored>[\w+-]+(?:\.\w[\w+-]*)*)[^)]*\) does not match the\s+quantization method specified in the [`'\"]?quantization[`'\"]? argument \((?P<given>[\w+-]+(?:\.\w[\w+-]*)*)\)",
)  # fmt: skip
NOT_QUANTISED: Final = sight("is not quantized and", pattern=r"--quantization (?P<given>\S+) was given, but (?P<model>\S+) is not quantized")
FORMAT: Final = sight("Quantization format not supported", "quantization format not supported", "uantization format is not supported")
UNKNOWN: Final = sight(
    "Unknown quantization method", "invalid choice", "Invalid quantization method", "[type=literal_error, input_value=", "[type=enum, input_value=",
    pattern=r"(?:Unknown|Invalid) quantization method:? [`'\"]?(?P<method>[\w+-]+(?:\.\w[\w+-]*)*)(?:.*?(?:Must be one of|Known are|Available methods:?) (?P<known>.*))?"
    r"|Input should be (?P<listed>.*['\"](?:awq|gptq)['\"].*?) \[type=(?:literal_error|enum), input_value=['\"](?P<input>[\w+-]+(?:\.\w[\w+-]*)*)['\"]"
    r"|argument (?:\S*--quantization\S*|-q): invalid choice: '(?P<choice>[\w+-]+(?:\.\w[\w+-]*)*)' \(choose from (?P<choices>.*)\)",
)  # fmt: skip
_ONLINE: Final = re.compile(r"fp8|int8|mxfp8|nvfp4|bitsandbytes|bnb|torchao|experts_int8|w8a8", re.IGNORECASE)
_LEFT: Final[dict[str, tuple[str, str]]] = {
    "gguf": ("GGUF moved out of the engine to a plugin", "GGUF 已从引擎移到插件"),
    "bitsandbytes": ("bitsandbytes moved out of the engine to a plugin", "bitsandbytes 已从引擎移到插件"),
    "squeezellm": ("SqueezeLLM was removed from the engine", "SqueezeLLM 已从引擎移除"),
    "marlin": (
        "the old Marlin format was removed; GPTQ checkpoints use those kernels by themselves",
        "旧 Marlin 格式已移除；GPTQ 检查点会自动使用这些内核",
    ),
    "aqlm": ("AQLM was removed from the engine", "AQLM 已从引擎移除"),
    "deepspeedfp": ("DeepSpeedFP was removed from the engine", "DeepSpeedFP 已从引擎移除"),
    "qqq": ("QQQ was removed from the engine", "QQQ 已从引擎移除"),
    "hqq": ("HQQ is not in this engine any more", "该引擎已不含 HQQ"),
    "bitblas": ("BitBLAS was removed from the engine", "BitBLAS 已从引擎移除"),
    "gptq_bitblas": ("BitBLAS was removed from the engine", "BitBLAS 已从引擎移除"),
    "gptq_marlin_24": ("the 2:4 Marlin format was removed from the engine", "2:4 Marlin 格式已从引擎移除"),
    "eetq": ("EETQ is not in this engine", "该引擎不含 EETQ"),
    "exl2": ("EXL2 is a format of ExLlamaV2, not of this engine", "EXL2 是 ExLlamaV2 的格式，不属于该引擎"),
    "exl3": ("EXL3 is a format of ExLlamaV3, not of this engine", "EXL3 是 ExLlamaV3 的格式，不属于该引擎"),
}


def without_flag(command: str) -> str | None:
    """The launch command without --quantization; None when it is no command or has none."""
    if not re.search(r"(?:^|\s)(?:--quantization|-q)(?:[ =]|$)", command) or not re.match(
        r"\s*(?:\w+=\S+ )*(?:vllm|headway|python\S*|docker|llama\S*|sglang\S*|uv|exec)\b", command
    ):
        return None
    return " ".join(re.sub(r"(?:^|(?<=\s))(?:--quantization|-q)(?:=|\s+)\S+\s?", "", command).split())


def flag_against_checkpoint(case: Case) -> Found | None:
    hit = case.log.first(MISMATCH)
    if hit is not None:
        stored, given = hit["stored"], hit["given"]
        if _quantises_again(stored, given):
            return None  # Q12
        cause = Words(
            f"The checkpoint is {stored}, by its own configuration, and the flag --quantization says {given}. The method is read from the checkpoint, so the flag can only agree or disagree;"
            " an AWQ or GPTQ model does not need it.",
            f"检查点自身的配置写明是 {stored}，而 --quantization 参数写的是 {given}。方法由检查点读出，这个参数只可能一致或冲突；AWQ、GPTQ 模型都不需要它。",
        )
        drop = Words(f"drop the flag --quantization: {stored} is read from the checkpoint", f"去掉 --quantization 参数：{stored} 会从检查点自动读出")
    elif (hit := case.log.first(NOT_QUANTISED)) is not None:
        stored, given = "None", hit["given"]
        cause = Words(
            f"The flag says {given}, and {hit['model']} is not quantised: {given} weights are made beforehand, not while loading.",
            f"参数写的是 {given}，而 {hit['model']} 并未量化：{given} 权重需要事先制作，不能在加载时生成。",
        )
        drop = Words("drop the flag --quantization, or name a checkpoint that is quantised", "去掉 --quantization 参数，或改用已量化的检查点")
    elif (hit := case.log.first(FORMAT)) is not None:
        given, stored = case.launch.flags["quantization"].value if "quantization" in case.launch.flags else "", case.model.claimed or case.model.named
        both = f": the flag says {given}, the checkpoint {stored or 'something else'}" if given else ""
        both_zh = f"：参数写的是 {given}，检查点是 {stored or '别的方法'}" if given else ""
        cause = Words(
            f"The quantisation that was asked for is not that of the checkpoint{both}. The method is read from the checkpoint; a flag can only disagree with it.",
            f"要求的量化方式与检查点不符{both_zh}。方法由检查点读出，参数只会与之冲突。",
        )
        drop = Words(
            f"drop the flag --quantization{f': {stored} is read from the checkpoint' if stored else ''}",
            f"去掉 --quantization 参数{f'：{stored} 会从检查点读出' if stored else ''}",
        )
        stored = stored or "the method of the checkpoint"
    else:
        return None
    return Found(
        cause=cause,
        evidence=[hit.quote(), *([case.launch.flags["quantization"].quote] if "quantization" in case.launch.flags else [])],
        fixes=[Fix(drop, without_flag(case.launch.command))],
        verify=Words(
            f"start again: the init line shows quantization={stored} or a kernel of it (such as {stored}_marlin)",
            f"重新启动：初始化行显示 quantization={stored} 或其内核（如 {stored}_marlin）",
        ),
        confidence=STATED if not case.log.sees(FORMAT) else 0.85,
    )


def quantised_twice(case: Case) -> Found | None:
    """A method that is made while loading, asked for on top of a checkpoint that is quantised already."""
    hit = case.log.first(MISMATCH)
    flag = case.launch.flags.get("quantization")
    if hit is not None:
        stored, given = hit["stored"], hit["given"]
    elif flag is not None and case.model.claimed and not case.startup.ready:
        stored, given = case.model.claimed, flag.value
    else:
        return None
    if not _quantises_again(stored, given):
        return None
    evidence = [hit.quote()] if hit is not None else []
    evidence += [flag.quote] if flag is not None else []
    evidence += [case.context.quote("model.config.quantization_config")] if case.model.claim else []
    return Found(
        cause=Words(
            f"The checkpoint is already quantised with {stored}, and the flag asks to quantise its weights to {given} while loading. That needs the original 16-bit weights;"
            " doing both at once is not possible and would cost quality twice.",
            f"检查点已经用 {stored} 量化，而参数又要求在加载时把权重量化为 {given}。后者需要原始的 16 位权重；两者不能叠加，叠加也会让质量损失两次。",
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words(f"drop the flag --quantization: the model is served as {stored}", f"去掉 --quantization 参数：模型按 {stored} 提供服务"),
                without_flag(case.launch.command),
            ),
            Fix(
                Words(
                    "or start from the original, unquantized checkpoint of this model if the other format is wanted",
                    "若确实要另一种格式，请从该模型未量化的原始检查点开始",
                )
            ),
        ],
        verify=Words(
            f"start again: the init line shows quantization={stored} (or its Marlin kernel)",
            f"重新启动：初始化行显示 quantization={stored}（或其 Marlin 内核）",
        ),
        confidence=STATED if hit is not None else 0.8,
    )


def _quantises_again(stored: str, given: str) -> bool:
    """fp8 on awq, but not fp8 on fp8 or compressed-tensors' own spelling of it."""
    same = stored.split("_")[0].lower() == given.split("_")[0].lower()
    return not same and bool(_ONLINE.match(given)) and stored.lower() not in ("none", "gguf")


def unknown_method(case: Case) -> Found | None:
    hit = next((hit for hit in case.log.hits(UNKNOWN) if hit["method"] or hit["choice"] or hit["input"]), None)
    if hit is None:
        return None
    method = hit["method"] or hit["choice"] or hit["input"]
    known = re.findall(r"[\w.+-]+", hit["known"] or hit["choices"] or hit["listed"])
    left = _LEFT.get(method.lower())
    nearest = difflib.get_close_matches(method.lower(), known, n=1, cutoff=0.6) if left is None else []
    if method.lower() in known:
        return None
    version = f" {case.launch.version}" if case.launch.version else ""
    if left is not None:
        cause = Words(
            f"{method} is no method of this engine{version}: {left[0]}. The file itself is fine, and another value of the flag would only misread it.",
            f"该引擎{version} 没有 {method} 方法：{left[1]}。文件本身没有问题，换一个参数值只会读错。",
        )
    else:
        guess = f"; the nearest it knows is {nearest[0]}" if nearest else ""
        guess_zh = f"；最接近的是 {nearest[0]}" if nearest else ""
        cause = Words(
            f"{method} is no method that this engine{version} knows{guess}. It is misspelt, or of another version.",
            f"该引擎{version} 不认识 {method} 这种方法{guess_zh}。可能是拼写错误，或属于别的版本。",
        )
    return Found(
        cause=cause,
        evidence=[hit.quote()],
        fixes=_other_ways(case, method.lower(), nearest),
        verify=Words(
            "start again: `Resolved architecture` is followed by the init line with quantization=, and a probe prompt is answered sanely",
            "重新启动：`Resolved architecture` 之后出现带 quantization= 的初始化行，测试提示的回答正常",
        ),
        confidence=STATED,
    )


def _other_ways(case: Case, method: str, nearest: list[str]) -> list[Fix]:
    model = case.launch.model
    file = model if model.endswith(".gguf") else ""
    if method == "gguf":
        named = shlex.quote(model) if file or "gguf" in model.lower() else ""
        local = "-m" if file else "-hf"
        return [
            Fix(Words("serve the GGUF file with Headway", "用 Headway 提供该 GGUF 文件"), f"headway serve {named}" if named else None),
            Fix(Words("or with llama.cpp", "或用 llama.cpp"), f"llama-server {local} {named}" if named else None),
            Fix(
                Words(
                    "or install the engine's GGUF plugin, or take the safetensors checkpoint of the same model",
                    "或安装引擎的 GGUF 插件，或使用同一模型的 safetensors 检查点",
                )
            ),
        ]
    if method == "bitsandbytes":
        return [
            Fix(Words("install the engine's bitsandbytes plugin", "安装引擎的 bitsandbytes 插件")),
            Fix(
                Words(
                    "or take a checkpoint of this model in a format the engine still reads (AWQ, GPTQ or compressed-tensors); the flag --quantization is then left out",
                    "或使用引擎仍支持的格式（AWQ、GPTQ 或 compressed-tensors）的检查点，此时不写 --quantization 参数",
                )
            ),
        ]
    if method in _LEFT:
        return [
            Fix(
                Words(
                    f"take another format of this model (AWQ, GPTQ or compressed-tensors safetensors); {method} was removed, and the flag --quantization is then left out",
                    f"使用该模型的其他格式（AWQ、GPTQ 或 compressed-tensors 的 safetensors）；{method} 已被移除，此时不写 --quantization 参数",
                )
            ),
            Fix(Words("or a GGUF file with Headway or llama.cpp", "或用 Headway、llama.cpp 提供 GGUF 文件")),
        ]
    fixes = [
        Fix(
            Words("drop the flag --quantization: the method is read from the checkpoint", "去掉 --quantization 参数：方法由检查点读出"),
            without_flag(case.launch.command),
        )
    ]
    if nearest:
        fixes.append(
            Fix(
                Words(f"or spell it {nearest[0]}, if the weights are to be quantised while loading", f"若要在加载时量化，请写成 {nearest[0]}")
                if _ONLINE.match(nearest[0])
                else Words(
                    f"its right spelling is {nearest[0]}, for a checkpoint that is {nearest[0]} already", f"正确写法是 {nearest[0]}，只用于已是 {nearest[0]} 的检查点"
                )
            )
        )
    return fixes


RULES: Final = (
    Rule(
        id="Q1",
        proof="live",
        title=Words("The flag contradicts the checkpoint", "量化参数与检查点矛盾"),
        symptoms=Words(
            "`Quantization method specified in the model config (X) does not match the quantization method specified in the quantization argument (Y)`; `Quantization format not supported`",
            "`Quantization method specified in the model config (X) does not match the quantization method specified in the quantization argument (Y)`；`Quantization format not supported`",
        ),
        why=Words("the method is read from the checkpoint; a flag can only disagree", "方法由检查点读出；参数只会与之冲突"),
        needs=Words("both names", "两个名称"),
        remedy=Words("drop the flag", "去掉该参数"),
        check=Words("`quantization=` in the init line", "初始化行的 `quantization=`"),
        judge=flag_against_checkpoint,
        sees=(MISMATCH, NOT_QUANTISED, FORMAT),
    ),
    Rule(
        id="Q2",
        title=Words("Unknown quantization method", "未知的量化方法"),
        symptoms=Words("`Unknown quantization method`", "`Unknown quantization method`"),
        why=Words(
            "removed (squeezellm), moved to a plugin (gguf, bitsandbytes), or misspelt",
            "已移除（squeezellm）、移到插件（gguf、bitsandbytes），或拼写错误",
        ),
        needs=Words("the name, the version", "名称、版本"),
        remedy=Words("plugin, another format, Headway or llama.cpp for GGUF", "插件、其他格式；GGUF 用 Headway 或 llama.cpp"),
        check=Words("the start passes and a probe prompt is sane", "启动通过，测试提示回答正常"),
        judge=unknown_method,
        sees=(UNKNOWN,),
    ),
    Rule(
        id="Q12",
        title=Words("Quantising twice", "重复量化"),
        symptoms=Words("`--quantization fp8` on a checkpoint that is quantised", "对已量化的检查点使用 `--quantization fp8`"),
        why=Words("quantising while loading needs the original weights", "加载时量化需要原始权重"),
        needs=Words("quantization_config of config.json", "config.json 的 quantization_config"),
        remedy=Words("drop the flag, or start from the unquantised checkpoint", "去掉参数，或从未量化的检查点开始"),
        check=Words("the load line, and a probe prompt", "加载行与测试提示"),
        judge=quantised_twice,
        explains=("Q1",),
    ),
)
