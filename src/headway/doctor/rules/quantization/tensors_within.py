"""Single tensors of a quantised checkpoint are not what the engine expects: Q14, Q16, Q17, Q19."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.memory.sizes import all_ranks
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NAME: Final = sight(
    "KeyError: ", "There is no module or parameter named", "not found in params_dict", "Unexpected key", "Missing key",
    pattern=r"KeyError: ['\"](?P<key>[\w.]+)['\"]|no module or parameter named ['\"](?P<module>[\w.]+)['\"]|(?<![\w.])(?P<param>[\w.]+) not found in params_dict|(?:Unexpected|Missing) key\(?s?\)?[^'\"]{0,200}['\"](?P<other>[\w.]+)['\"]",
)  # fmt: skip
EMBEDDING: Final = sight(
    "token_embd.weight", "embed_tokens.qweight", "object has no attribute 'qweight",
    pattern=r"token_embd\.weight.*?(?:not supported|unsupported|supported types|cannot(?! be used with preferred)|refused|not implemented)|(?:not supported|unsupported|does not support|refused|cannot|not implemented).*?token_embd\.weight"
    r"|stored as (?P<type>\w+) \(first: token_embd\.weight|(?:KeyError|no module or parameter named|not found).*?embed_tokens\.qweight|embed_tokens\.qweight\w* not found|'\w*Embedding' object has no attribute 'qweight",
)  # fmt: skip
DTYPES: Final = sight(
    "to have the same dtype", "must have the same dtype", "expected scalar type", "should be the same",
    pattern=r"(?:expected (?:m1 and m2|mat1 and mat2)|mat1 and mat2 must|m1 and m2) (?:to )?have the same dtype(?:, but got:? (?P<left>[\w:.]+) (?:!=|and) (?P<right>[\w:.]+))?|expected scalar type (?P<wanted>\w+) but found (?P<found>\w+)"
    r"|Input type \((?P<input>[\w.]+)\) and (?:bias|weight) type \((?P<weight>[\w.]+)\) should be the same",
)  # fmt: skip
ARCHITECTURE: Final = sight("Resolved architecture", pattern=r"Resolved architecture: (?P<name>\w+)")
_QUANTISED_END: Final = re.compile(r"\.(?:qweight|qzeros|scales|g_idx|weight_scale\w*|weight_packed|input_scale|weight_zero_point)$")
_MIXTURE: Final = re.compile(r"moe|mixtral|deepseek|olmoe|dbrx|jamba|gptoss", re.IGNORECASE)
_EXPERT_FIELDS: Final = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_MORE: Final = 1.5
_DTYPE_WORDS: Final = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16", "float": "float32", "float32": "float32"}


def exceptions_ignored(case: Case) -> Found | None:
    """A layer that the checkpoint keeps at 16 bits is built as a quantised one, so its names do not exist."""
    listed = {
        str(name): key
        for key in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules")
        if isinstance(names := case.model.claim.get(key), list)
        for name in names
    }
    if not listed:
        return None
    for hit in case.log.hits(NAME):
        name = hit["key"] or hit["module"] or hit["param"] or hit["other"]
        entry = next((one for one in listed if _covers(one, name)), None)
        if entry is None:
            continue
        asked = "as quantised" if _QUANTISED_END.search(name) else "under another name"
        return Found(
            cause=Words(
                f"config.json lists {entry!r} among the modules that are not quantised, and the engine built {name} {asked} all the same: the list was ignored (often a prefix that differs), so this layer's weights cannot be found.",
                f"config.json 把 {entry!r} 列为不量化的模块，引擎却仍把 {name} 当作量化层构建：该列表被忽略（常因前缀不同），因此找不到这一层的权重。",
            ),
            evidence=[hit.quote(), case.context.quote("model.config.quantization_config")],
            fixes=[
                Fix(
                    Words(
                        "write the list with the names the engine uses: the full prefix of the module as it stands in the error",
                        "把列表改成引擎使用的名称：与报错中一致的完整前缀",
                    ),
                    f'"{listed[entry]}": ["{name.rpartition(".")[0]}"]',
                ),
                Fix(Words("or a version of the engine, or a checkpoint, whose names agree", "或使用名称一致的引擎版本或检查点")),
            ],
            verify=Words("the shards load, and a probe prompt is sane", "分片加载成功，测试提示正常"),
            confidence=0.85,
        )
    return None


def _covers(entry: str, name: str) -> bool:
    if entry.startswith("re:"):
        try:
            return any(re.search(entry[3:], one) for one in (name, name.rpartition(".")[0]))  # it is written for modules
        except re.error:
            return False
    parts, wanted = name.split("."), entry.split(".")
    return any(parts[at : at + len(wanted)] == wanted for at in range(len(parts)))


def embeddings_quantised(case: Case) -> Found | None:
    hit = case.log.first(EMBEDDING)
    if hit is None:
        return None
    kind = f" as {hit['type']}" if hit["type"] else ""
    kind_zh = f"以 {hit['type']} " if hit["type"] else ""
    return Found(
        cause=Words(
            f"The GGUF file stores the embedding table (token_embd.weight){kind} quantised, and this engine looks rows up in a 16-bit table only. The file is whole; other layers may be quantised.",
            f"GGUF 文件把词嵌入表（token_embd.weight）{kind_zh}量化存储，而该引擎只能在 16 位表中查行。文件是完整的，其他层可以量化。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words("make or take a file whose embeddings stay at 16 bits (or Q8_0)", "制作或使用词嵌入保持 16 位（或 Q8_0）的文件"),
                "llama-quantize --token-embedding-type f16 model-f16.gguf model-q4_k_m.gguf Q4_K_M",
            ),
            Fix(Words("or serve the file with llama.cpp, which reads quantised embeddings", "或用 llama.cpp 提供该文件，它能读取量化的词嵌入")),
        ],
        verify=Words("the load line appears, and a probe prompt is sane", "出现加载行，测试提示正常"),
        confidence=0.9,
    )


def mixed_dtypes(case: Case) -> Found | None:
    hit = case.log.first(DTYPES)
    if hit is None:
        return None
    pair = [_plain(hit[name]) for name in ("left", "right", "wanted", "found", "input", "weight") if hit[name]]
    dtype = case.launch.fact("dtype")
    target = _target(case, pair)
    between = f" ({pair[0]} against {pair[1]})" if len(pair) == 2 else ""
    between_zh = f"（{pair[0]} 与 {pair[1]}）" if len(pair) == 2 else ""
    counted = _stored_dtypes(case)
    seen = f" The files hold {', '.join(f'{count} tensors of {name}' for name, count in counted.items())}." if len(counted) > 1 else ""
    seen_zh = f"文件中有 {'、'.join(f'{count} 个 {name} 张量' for name, count in counted.items())}。" if len(counted) > 1 else ""
    return Found(
        cause=Words(
            f"Two operands of one product differ in dtype{between}: parts of the checkpoint are stored in another dtype than the rest, and nothing casts them.{seen} The traceback's line is only where they met.",
            f"同一乘法的两个操作数 dtype 不同{between_zh}：检查点的一部分以不同 dtype 存储，且没有转换。{seen_zh}报错的那一行只是它们相遇之处。",
        ),
        evidence=[
            hit.quote(),
            *([dtype.quote] if dtype is not None else []),
            *([case.context.quote("model.tensors", ", ".join(counted))] if len(counted) > 1 else []),
        ],
        fixes=[
            Fix(Words(f"compute everything in one dtype, {target}", f"全部用同一 dtype 计算：{target}"), f"--dtype {target}"),
            Fix(
                Words(
                    "or convert the odd tensors (norms, scales, head) and save the checkpoint again in one dtype",
                    "或把不一致的张量（norm、scale、输出头）转换后以同一 dtype 重新保存检查点",
                )
            ),
        ],
        verify=Words("a probe prompt is answered without the error; logits are finite", "测试提示不再报错；logits 有限"),
        confidence=0.8,
    )


def _plain(name: str) -> str:
    word = name.split("::")[-1].split(".")[-1].lower().removesuffix("tensor")
    return _DTYPE_WORDS.get(word, word)


def _target(case: Case, pair: list[str]) -> str:
    """Scales of AWQ and GPTQ are float16; else what the configuration states, else bfloat16."""
    if "float16" in pair and (case.model.claimed or case.launch.value("quantization")).startswith(("awq", "gptq")):
        return "float16"
    if case.model.stored_dtype in pair:
        return case.model.stored_dtype
    return next((name for name in ("bfloat16", "float16") if name in pair), "bfloat16")


def _stored_dtypes(case: Case) -> dict[str, int]:
    counted: dict[str, int] = {}
    for tensor in case.context.items("model.tensors"):
        if isinstance(tensor, dict) and tensor.get("dtype"):
            counted[str(tensor["dtype"])] = counted.get(str(tensor["dtype"]), 0) + 1
    return counted


def experts_not_quantised(case: Case) -> Found | None:
    """Loaded size against what the bits of the method give."""
    method = case.launch.value("quantization").replace("None", "") or case.model.claimed
    weights, architecture = case.memory.weights, case.log.first(ARCHITECTURE)
    mixture = bool(architecture and _MIXTURE.search(architecture["name"])) or any(case.model.config.get(name) for name in _EXPERT_FIELDS)
    if not method or not mixture or weights is None or weights.quote.line is None:
        return None
    loaded = weights.value * all_ranks(case.launch)
    bits = case.model.claim.get("bits") or case.model.claim.get("w_bit") or case.model.named_bits or (8 if "fp8" in method or "int8" in method else 4)
    expected = case.model.stored.value if case.model.stored else case.model.gib((float(bits) if isinstance(bits, (int, float)) else 4.0) + 0.5)
    full = case.model.gib(16)
    if expected is None or loaded < _MORE * expected or (full is not None and loaded > 1.4 * full):
        return None
    return Found(
        cause=Words(
            f"{loaded:.1f} GiB were loaded where {method} weights of {bits} bits take about {expected:.1f} GiB ({loaded / expected:.1f} times): the experts, most of a mixture's weights, are held unquantised"
            f"{f' (all at 16 bits: {full:.1f} GiB)' if full else ''}.",
            f"加载了 {loaded:.1f} GiB，而 {bits} 位的 {method} 权重约需 {expected:.1f} GiB（{loaded / expected:.1f} 倍）：占混合专家模型大部分的专家没有量化{f'（全部 16 位为 {full:.1f} GiB）' if full else ''}。",
        ),
        evidence=[weights.quote, *([architecture.quote()] if architecture else []), *([case.model.stored.quote] if case.model.stored else [])],
        fixes=[
            Fix(
                Words(
                    "take a checkpoint whose experts are quantised too (look for experts.*.qweight or weight_packed among its tensors)",
                    "使用专家也已量化的检查点（查看张量中是否有 experts.*.qweight 或 weight_packed）",
                )
            ),
            Fix(
                Words("or, if they are in the files, the kernel for quantised experts", "若文件中已量化，则使用量化专家的内核"),
                "--quantization moe_wna16" if method.startswith(("awq", "gptq")) else None,
            ),
        ],
        verify=Words(
            f"`Model loading took` is near {expected / all_ranks(case.launch):.1f} GiB",
            f"`Model loading took` 接近 {expected / all_ranks(case.launch):.1f} GiB",
        ),
        confidence=0.85,
        weight="degraded",
        explains=("O1", "O2"),
    )


RULES: Final = (
    Rule(
        id="Q14",
        title=Words("The list of unquantised modules was ignored", "不量化模块的列表被忽略"),
        symptoms=Words("a name is missing that belongs to a module of modules_to_not_convert", "缺失的名称属于 modules_to_not_convert 中的模块"),
        why=Words("the list's names and the engine's names differ", "列表中的名称与引擎的名称不同"),
        needs=Words("quantization_config, the missing name", "quantization_config、缺失的名称"),
        remedy=Words("the engine's full prefix in the list", "在列表中写引擎的完整前缀"),
        check=Words("the load line and a probe prompt", "加载行与测试提示"),
        judge=exceptions_ignored,
        sees=(NAME,),
        explains=("L8", "Q7"),
    ),
    Rule(
        id="Q16",
        title=Words("The GGUF file's embeddings are quantised", "GGUF 的词嵌入被量化"),
        symptoms=Words("an error about `token_embd.weight` or `embed_tokens.qweight`", "关于 `token_embd.weight` 或 `embed_tokens.qweight` 的报错"),
        why=Words("rows are looked up in a 16-bit table only", "只能在 16 位表中查行"),
        needs=Words("types of the tensors", "张量类型"),
        remedy=Words("a file with 16-bit embeddings, or llama.cpp", "词嵌入为 16 位的文件，或 llama.cpp"),
        check=Words("the load line and a probe prompt", "加载行与测试提示"),
        judge=embeddings_quantised,
        sees=(EMBEDDING,),
        explains=("L8",),
    ),
    Rule(
        id="Q17",
        title=Words("Mixed dtypes in one checkpoint", "一个检查点中混有不同 dtype"),
        symptoms=Words(
            "`expected m1 and m2 to have the same dtype`, `expected scalar type Half but found BFloat16`",
            "`expected m1 and m2 to have the same dtype`、`expected scalar type Half but found BFloat16`",
        ),
        why=Words("some tensors were saved in another dtype", "部分张量以不同 dtype 保存"),
        needs=Words("dtypes of the tensors", "张量的 dtype"),
        remedy=Words("one dtype by --dtype, or a converted checkpoint", "用 --dtype 统一，或转换检查点"),
        check=Words("a probe prompt", "测试提示"),
        judge=mixed_dtypes,
        sees=(DTYPES,),
    ),
    Rule(
        id="Q19",
        title=Words("The experts of the mixture are not quantised", "混合专家的专家未量化"),
        symptoms=Words(
            "`Model loading took` far above what the bits give, for a mixture of experts", "混合专家模型的 `Model loading took` 远超其位数应有的大小"
        ),
        why=Words("only attention was quantised, or experts fall back to 16 bits", "只量化了注意力，或专家回退到 16 位"),
        needs=Words("loaded GiB, size of the files", "加载 GiB、文件大小"),
        remedy=Words("a checkpoint with quantised experts, or their kernel", "专家已量化的检查点，或对应内核"),
        check=Words("the load line", "加载行"),
        judge=experts_not_quantised,
        sees=(ARCHITECTURE,),
    ),
)
