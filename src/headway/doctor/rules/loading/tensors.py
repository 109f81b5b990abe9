"""L8 and L9: the tensors in the files do not fit the model that the configuration describes, by name or by shape."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.model_folder import file_named, model_files, model_place
from headway.doctor.rules.loading.outcome import of_the_model_runtime, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NAMES: Final = (
    sight(
        "KeyError: '",
        pattern=r"KeyError: '(?P<name>(?:[\w]+\.)*(?:layers?|blocks?|h|blk)\.\d+\.[\w.]+|[\w.]+\.(?:weight|bias|qweight|qzeros|scales|weight_scale|weight_scale_inv|g_idx|absmax|lora_[AB])\b[\w.]*)'",
    ),
    sight(
        "There is no module or parameter named",
        pattern=r"There is no module or parameter named '(?P<name>[^']+)' in (?P<class>\w+)",
    ),
    sight(
        "weights were not initialized from checkpoint",
        pattern=r"weights were not initialized from checkpoint: \{?'?(?P<name>[^',}\s]+)",
    ),
    sight("key(s) in state_dict", pattern=r"(?:Missing|Unexpected) key\(s\) in state_dict: \"(?P<name>[^\"]+)\""),
    sight(
        "missing tensor '",
        "create_tensor: tensor '",
        pattern=r"(?:missing tensor '(?P<name>[^']+)'|create_tensor: tensor '(?P<create>[^']+)' not found)",
    ),
    sight("wrong number of tensors", pattern=r"wrong number of tensors; expected (?P<expected>\d+), got (?P<got>\d+)"),
    sight(
        "[missing_tensor]",
        "[unexpected_tensor]",
        pattern=r"(?:configuration describes it): (?P<name>[\w.\-]+).*\[(?:missing|unexpected)_tensor\]",
    ),
)
NEW_WEIGHTS: Final = sight("and are newly initialized", pattern=r"and are newly initialized: \['?(?P<name>[^',\]]+)")


@dataclass(frozen=True, slots=True)
class _Layout:
    """A way of naming that gives away where the checkpoint comes from. `pattern` is searched in the tensor's name."""

    pattern: str
    says: Words
    fix: Fix


_LAYOUTS: Final = (
    _Layout(
        r"attention\.w[qkvo]\b|feed_forward\.w[123]\b|attention_norm|tok_embeddings",
        Words(
            "that is the naming of a consolidated checkpoint (Mistral or Meta format), while the loader expects names of the Hugging Face format",
            "这是 consolidated 检查点（Mistral 或 Meta 格式）的命名，而加载器期望 Hugging Face 格式的名字",
        ),
        Fix(
            Words("load it in the Mistral format", "按 Mistral 格式加载"),
            "--load-format mistral --config-format mistral --tokenizer-mode mistral",
        ),
    ),
    _Layout(
        r"\.(?:qweight|qzeros|scales|g_idx|weight_scale\w*|weight_packed|absmax|quant_state\w*|input_scale)\b",
        Words(
            "that is a quantised parameter, while the configuration describes an unquantised model",
            "这是量化参数，而配置描述的是未量化模型",
        ),
        Fix(
            Words(
                "restore the section quantization_config (method, bits, group size) of config.json from the repository of the quantised checkpoint",
                "从量化检查点的仓库恢复 config.json 中的 quantization_config（方法、位数、组大小）",
            )
        ),
    ),
    _Layout(
        r"lora_[AB]|^base_model(?:\.|$)",
        Words("that is a tensor of a LoRA adapter, not of a whole model", "这是 LoRA 适配器的张量，不是完整模型的"),
        Fix(
            Words("serve the base model and give this folder as an adapter", "启动基座模型，并把该目录作为适配器加载"),
            "--enable-lora --lora-modules adapter=.",
        ),
    ),
    _Layout(
        r"^(?:model\.)?(?:module|_orig_mod|_fsdp_wrapped_module)(?:\.|$)",
        Words("the prefix was left by the training wrapper that saved it", "该前缀是保存它的训练包装器留下的"),
        Fix(
            Words(
                "save the checkpoint again from the unwrapped model (model.module.save_pretrained), which gives the usual names",
                "用未包装的模型重新保存检查点（model.module.save_pretrained），即可得到常规名字",
            )
        ),
    ),
)


# what a GGUF file needs whose tensors are not those that the reader expects
_CONVERT_AGAIN: Final = [
    Fix(
        Words(
            "use a newer llama.cpp build: it may know this variant of the architecture",
            "使用更新的 llama.cpp：它可能认识该架构的这个变体",
        ),
        "git -C llama.cpp pull && cmake -S llama.cpp -B llama.cpp/build && cmake --build llama.cpp/build -j",
    ),
    Fix(
        Words(
            "or convert the checkpoint again with the converter of that build, config.json and weights from one repository",
            "或用该版本的转换器重新转换检查点，config.json 与权重来自同一仓库",
        ),
        "python llama.cpp/convert_hf_to_gguf.py . --outfile model.gguf",
    ),
]


def names_do_not_match(case: Case) -> Found | None:
    """The name in the error tells the layout of the checkpoint; the configuration tells what was expected."""
    hit = case.log.first(*NAMES) or (case.log.first(NEW_WEIGHTS))
    if hit is None or of_the_model_runtime(case):
        return None
    degraded = hit.match.re is NEW_WEIGHTS.pattern
    if overcome(case, hit) and not degraded:
        return None
    groups = hit.match.groupdict()
    name = groups.get("name") or groups.get("create") or ""
    architecture = groups.get("class") or case.context.text("model.config.architectures.0")
    layout = next((row for row in _LAYOUTS if re.search(row.pattern, name)), None)
    consolidated = file_named(case, "consolidated.safetensors") or next(
        (file for file in model_files(case) if file.name.startswith("consolidated")), None
    )
    if layout is None and consolidated is not None:
        layout = _LAYOUTS[0]
    if groups.get("expected"):
        stated = Words(
            f"The file has {groups['got']} tensors, the architecture needs {groups['expected']}",
            f"文件有 {groups['got']} 个张量，架构需要 {groups['expected']} 个",
        )
    elif "not initialized from checkpoint" in hit.line.text:
        stated = Words(
            f"Tensor {name} of {architecture or 'the model'} is missing in the checkpoint (not initialized from it)",
            f"检查点缺少{architecture or '模型'}的张量 {name}（未能从检查点初始化）",
        )
    else:
        stated = Words(
            f"Tensor {name} of the checkpoint and the parameters of {architecture or 'the model'} do not go together",
            f"检查点中的张量名 {name} 与{f' {architecture} ' if architecture else '模型'}的参数对不上",
        )
    why = (
        layout.says
        if layout
        else Words(
            "the configuration describes another architecture, or the checkpoint has another layout (naming) than the loader expects",
            "配置描述的是另一种架构，或检查点的布局（命名）与加载器期望的不同",
        )
    )
    place = model_place(case)
    fixes = [layout.fix] if layout else []
    if place and fixes and fixes[0].command and fixes[0].command.endswith("=."):
        fixes = [replace(fixes[0], command=f"{fixes[0].command[:-1]}{place}")]
    if "not initialized from checkpoint" in hit.line.text:
        fixes.append(
            Fix(
                Words(
                    "take a complete checkpoint: the missing tensors may be in a shard that was not copied, or the export left them out",
                    "使用完整的检查点：缺少的张量可能在未复制的分片中，或导出时被遗漏",
                ),
                f"hf download {place}" if re.fullmatch(r"[\w.\-]+/[\w.\-]+", place) else None,
            )
        )
    gguf = (
        case.launch.program == "llama.cpp"
        or name.startswith("blk.")
        or bool(groups.get("create"))
        or bool(groups.get("expected"))
    )
    fixes += (
        _CONVERT_AGAIN
        if gguf
        else [
            Fix(
                Words(
                    "use the config.json that belongs to this checkpoint, or a converted checkpoint in Hugging Face format",
                    "使用属于该检查点的 config.json，或转换成 Hugging Face 格式的检查点",
                )
            ),
            Fix(
                Words("list the tensor names of the checkpoint and compare them", "列出检查点的张量名进行对照"),
                f"python -c \"import glob; from safetensors import safe_open; [print(k, safe_open(f, 'pt').get_slice(k).get_shape()) for f in sorted(glob.glob('{place or '.'}/*.safetensors')) for k in safe_open(f, 'pt').keys()]\" | head -40",
            ),
        ]
    )
    evidence = quoted(hit)
    if consolidated is not None:
        evidence.append(case.context.quote(f"{consolidated.path}.name"))
    return Found(
        cause=Words(f"{stated.en}: {why.en}.", f"{stated.zh}：{why.zh}。"),
        evidence=evidence,
        fixes=fixes,
        verify=Words(
            f"the names listed from {place or 'the folder'} are those of the model, and the log shows `Loading weights took`",
            f"从 {place or '目录'} 列出的名字与模型一致，且日志出现 `Loading weights took`",
        ),
        confidence=0.65 if degraded else STATED if layout else 0.85,
        weight="degraded" if degraded else "fatal",
    )


SHAPES: Final = (
    sight(
        "Attempted to load weight",
        pattern=r"Attempted to load weight \((?:torch\.Size\()?\[?(?P<found>[\d, ]+)[\])]*\)? into parameter \((?:torch\.Size\()?\[?(?P<wanted>[\d, ]+)",
    ),
    sight(
        "size mismatch for",
        pattern=r"size mismatch for (?P<name>[\w.]+): copying a param with shape torch\.Size\(\[(?P<found>[\d, ]+)\]\) from checkpoint, the shape in current model is torch\.Size\(\[(?P<wanted>[\d, ]+)\]",
    ),
    sight(
        "has wrong shape",
        pattern=r"tensor '(?P<name>[^']+)' has wrong shape; expected +(?P<wanted>[\d, ]+), got +(?P<found>[\d, ]+)",
    ),
    sight(
        "[tensor_shape]",
        pattern=r"tensor (?P<name>\S+) has shape \[(?P<found>[\d, ]+)\], the configuration says \[(?P<wanted>[\d, ]+)\]",
    ),
    sight(
        "The size of tensor a (",
        pattern=r"The size of tensor a \((?P<found>\d+)\) must match the size of tensor b \((?P<wanted>\d+)\)",
    ),
    sight(
        "exceeds dimension size",
        pattern=r"start \((?P<start>\d+)\) \+ length \((?P<length>\d+)\) exceeds dimension size \((?P<found>\d+)\)",
    ),
    sight(
        "param_data.shape == loaded_weight.shape",
        "param.size() == loaded_weight.size()",
        pattern=r"assert .*loaded_weight",
    ),
)


_MANY_ROWS: Final = 30_000  # only the embedding and the head have so many


def shapes_do_not_match(case: Case) -> Found | None:
    """The quotient of both shapes tells whether the file was already split for tensor parallelism."""
    hit = case.log.first(*SHAPES)
    if hit is None or overcome(case, hit) or of_the_model_runtime(case) or case.startup.reached("weights loaded"):
        return None
    groups = hit.match.groupdict()
    found, wanted = _sizes(groups.get("found")), _sizes(groups.get("wanted"))
    name = groups.get("name") or ""
    tp = int(case.launch.number("tensor_parallel_size") or 1)
    ratio = _ratio(found, wanted)
    split = ratio in (2, 4, 8, 16) or (bool(groups.get("start")) and tp > 1)
    shown = Words(
        f"{'Tensor ' + name if name else 'A tensor'} has shape {list(found)} in the file" + (f", the configuration describes {list(wanted)}" if wanted else ""),
        f"{'张量 ' + name + ' ' if name else '某个张量'}在文件中的形状是 {list(found)}" + (f"，而配置描述的是 {list(wanted)}" if wanted else ""),
    ) if found else Words("A tensor in the file has another shape than the configuration describes", "文件中某个张量的形状与配置描述的不同")  # fmt: skip
    rows = len(found) == len(wanted) == 2 and found[1] == wanted[1] and min(found[0], wanted[0]) > _MANY_ROWS
    vocabulary = (bool(re.search(r"embed|lm_head|output\.weight|wte", name)) and len(found) == len(wanted)) or (
        rows and not name
    )
    if vocabulary and found and wanted and not split:
        why = Words(
            f"the vocabulary differs ({found[0]} rows against {wanted[0]}): config.json and checkpoint are not of one model, or tokens were added and vocab_size was not",
            f"词表大小不同（{found[0]} 行对 {wanted[0]} 行）：config.json 与检查点不属于同一模型，或新增了词元却没有更新 vocab_size",
        )
    elif split:
        times = Words(f" (a factor of {ratio})" if ratio else "", f"（相差 {ratio} 倍）" if ratio else "")
        why = Words(
            f"the file seems to be split for tensor parallelism already{times.en}, or another size of the model is described",
            f"该文件似乎已按张量并行切分{times.zh}，或配置描述的是另一规格的模型",
        )
    else:
        why = Words(
            "config.json belongs to another size or variant of the model", "config.json 属于另一规格或变体的模型"
        )
    place = model_place(case)
    fixes = (
        _CONVERT_AGAIN[:]
        if hit.match.re is SHAPES[2].pattern
        else [
            Fix(
                Words(
                    "use the config.json that belongs to these weights (same repository and revision)",
                    "使用与这些权重配套的 config.json（同一仓库、同一版本）",
                ),
                f"hf download {place} config.json --force-download"
                if re.fullmatch(r"[\w.\-]+/[\w.\-]+", place)
                else None,
            ),
            Fix(
                Words("compare the shapes in the file headers with the configuration", "对照文件头中的形状与配置"),
                f"python -c \"import glob; from safetensors import safe_open; [print(k, safe_open(f, 'pt').get_slice(k).get_shape()) for f in sorted(glob.glob('{place or '.'}/*.safetensors')) for k in safe_open(f, 'pt').keys()]\" | head -40",
            ),
        ]
    )
    if split:
        fixes.insert(
            0,
            Fix(
                Words(
                    "load a checkpoint that is not split, or read the split one with the loader and the split it was written for",
                    "加载未切分的检查点，或用写出它的加载方式与相同的切分数读取",
                ),
                f"--load-format sharded_state --tensor-parallel-size {tp if tp > 1 else ratio or 2}",
            ),
        )
    return Found(
        cause=Words(f"{shown.en}: {why.en}.", f"{shown.zh}：{why.zh}。"),
        evidence=quoted(hit),
        fixes=fixes,
        verify=Words(
            "the shapes in the headers equal those of the configuration, and the log shows `Loading weights took`",
            "文件头中的形状与配置一致，且日志出现 `Loading weights took`",
        ),
        confidence=0.9 if found and wanted else 0.75,
        explains=("L8",),
    )


def _sizes(text: str | None) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text or ""))


def _ratio(found: tuple[int, ...], wanted: tuple[int, ...]) -> int:
    """The whole number by which exactly one dimension differs, 0 when there is none."""
    if len(found) != len(wanted):
        return 0
    different = [
        (small, large) for small, large in (sorted(pair) for pair in zip(found, wanted, strict=True)) if small != large
    ]
    if len(different) != 1 or not different[0][0] or different[0][1] % different[0][0]:
        return 0
    return different[0][1] // different[0][0]


RULES: Final = (
    Rule(
        id="L8",
        title=Words("Tensor names do not match the model", "张量名与模型不匹配"),
        symptoms=Words(
            "`KeyError: 'layers.0...'`, missing or unexpected keys", "`KeyError: 'layers.0...'`、缺少或多余的键"
        ),
        why=Words(
            "another layout (consolidated, Mistral), quantised parameters, or a configuration of another architecture",
            "其他布局（consolidated、Mistral）、量化参数，或另一架构的配置",
        ),
        needs=Words("the tensor names in the files and the architecture", "文件中的张量名与架构"),
        remedy=Words(
            "the right configuration or load format, or a converted checkpoint",
            "正确的配置或加载格式，或转换后的检查点",
        ),
        check=Words("list the tensor names and compare", "列出张量名对照"),
        judge=names_do_not_match,
        sees=(*NAMES, NEW_WEIGHTS),
    ),
    Rule(
        id="L9",
        title=Words("Tensor shapes do not match the configuration", "张量形状与配置不匹配"),
        symptoms=Words(
            "`size mismatch for`, `Attempted to load weight`, `has wrong shape`",
            "`size mismatch for`、`Attempted to load weight`、`has wrong shape`",
        ),
        why=Words(
            "a configuration of another size, or a file that is already split for tensor parallelism",
            "另一规格的配置，或文件已按张量并行切分",
        ),
        needs=Words("both shapes and the tensor parallel size", "两边的形状与张量并行大小"),
        remedy=Words(
            "the configuration of these weights, or the unsplit checkpoint", "与权重配套的配置，或未切分的检查点"
        ),
        check=Words("the shapes in the file headers", "文件头中的形状"),
        judge=shapes_do_not_match,
        sees=SHAPES,
    ),
)
