"""The weights are larger than the device (O5), or would not be if they were loaded as the quantised ones they are (O14)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.finding import STATED, Abstention, Fix, Found, Quote
from headway.doctor.rules.memory.blame import blame
from headway.doctor.rules.memory.lighter_weights import lighter_weights, weights_of_unknown_size
from headway.doctor.rules.memory.llama_buffers import SIGHTS as LLAMA_SIGHTS
from headway.doctor.rules.memory.llama_buffers import weights_that_fit
from headway.doctor.rules.memory.moment import SAMPLER
from headway.doctor.rules.memory.moment import SIGHTS as MOMENT_SIGHTS
from headway.doctor.rules.memory.sizes import all_ranks, loads_unquantised, whole_weights_gib
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_CONTEXT_GIB: Final = 1.0
_EARLY: Final = Words(
    " It happened while the weights were loaded: neither cache nor context exists yet, so a lower memory share or a shorter context cannot help.",
    "失败发生在加载权重时：此时还没有缓存和上下文，降低显存份额或缩短上下文都没有用。",
)
_SECTION: Final = {
    "awq": '"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true, "version": "gemm"}',
    "gptq": '"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false}',
}


def weights_larger_than_card(case: Case) -> Found | Abstention | None:
    """Bytes of the weights against the total less a gigabyte for the driver's context."""
    failure = blame(case)
    if failure is None:
        return weights_that_fit(case) or _numbers_missing(case)
    if failure.rule != "O5":
        return None
    oom, whole = failure.oom, whole_weights_gib(case)
    total = oom.total or (case.memory.total.value if case.memory.total else None)
    own = oom.own or oom.allocated
    each = whole / all_ranks(case.launch) if whole is not None else None
    evidence = [oom.hit.quote()]
    en, zh = _sizes(case, each, total)
    if own is not None:
        en += f" This process alone had filled {own:.2f} GiB when it asked for more."
        zh += f"本进程自己已用 {own:.2f} GiB，仍在继续申请。"
    if case.model.stored is not None:
        evidence.append(case.model.stored.quote)
    closes = each is not None and total is not None and each > total - _CONTEXT_GIB
    return Found(
        cause=Words(
            en + (_EARLY.en if failure.moment != "unknown" else ""),
            zh + (_EARLY.zh if failure.moment != "unknown" else ""),
        ),
        evidence=evidence,
        fixes=lighter_weights(case, each, total) if each is not None else weights_of_unknown_size(case, total),
        verify=Words(
            f"`Model loading took` stays below {total - _CONTEXT_GIB:.1f} GiB and the start goes on"
            if total
            else "`Model loading took` appears in the log",
            f"`Model loading took` 低于 {total - _CONTEXT_GIB:.1f} GiB 且启动继续" if total else "日志出现 `Model loading took`",
        ),
        confidence=STATED if closes else 0.85 if failure.moment != "unknown" else 0.65,
    )


def _numbers_missing(case: Case) -> Abstention | None:
    """Memory ran out, and neither the numbers nor the lines before say whose it is."""
    if not case.out_of_memory or case.startup.ready or case.log.sees(SAMPLER):
        return None
    hit = case.out_of_memory[0].hit
    return Abstention(
        Words(
            f"line {hit.line.number} says that the device's memory ran out, without its numbers; the whole message (total, free, this process) and the lines before it, or `nvidia-smi`, would tell whose memory it is",
            f"第 {hit.line.number} 行说显存耗尽，但没有数字；需要完整的报错（总量、空闲、本进程）及其前面的日志，或 `nvidia-smi` 的输出，才能判断显存归谁",
        ),
        (hit.quote(),),
    )


def _sizes(case: Case, each: float | None, total: float | None) -> tuple[str, str]:
    limit = f"{total:.2f} GiB - {_CONTEXT_GIB:g} GiB for the driver = {total - _CONTEXT_GIB:.2f} GiB" if total else "the device"
    limit_zh = f"{total:.2f} GiB - 驱动 {_CONTEXT_GIB:g} GiB = {total - _CONTEXT_GIB:.2f} GiB" if total else "该设备"
    if each is None:
        return f"The weights do not fit into {limit}.", f"权重放不进 {limit_zh}。"
    ranks = all_ranks(case.launch)
    per = f" on each of {ranks} ranks" if ranks > 1 else ""
    origin = origin_zh = ""
    if case.model.stored is None and case.model.parameters:
        origin = f" ({case.model.parameters / 1e9:.1f}B parameters x {case.model.dtype_bytes} bytes, by the " + (
            "configuration)" if case.model.shape else "name)"
        )
        source = "配置" if case.model.shape else "名称"
        origin_zh = f"（按{source}：{case.model.parameters / 1e9:.1f}B 参数 x {case.model.dtype_bytes} 字节）"
    verb = "more than" if total and each > total - _CONTEXT_GIB else "against"
    return (
        f"The weights take about {each:.1f} GiB{per}{origin}, {verb} {limit}.",
        f"权重约 {each:.1f} GiB{f'（{ranks} 个 rank 各自）' if ranks > 1 else ''}{origin_zh}{'，超过' if verb == 'more than' else '，可用为'} {limit_zh}。",
    )


def loaded_unquantised(case: Case) -> Found | None:
    """The files hold packed tensors, or the name promises them, and the engine says quantization=None."""
    failure = blame(case)
    upcast = _upcast(case)
    if failure is not None and failure.rule in ("O5", "O7", "O11", "O1") and upcast is not None:
        return upcast
    if not loads_unquantised(case):
        return None
    model, stored = case.model, case.model.stored
    full = model.gib(16)
    loaded = case.memory.weights.value if case.memory.weights else None
    fails = failure is not None and failure.rule == "O14"
    inflated = loaded is not None and stored is not None and loaded * all_ranks(case.launch) > 1.5 * stored.value
    if not fails and not inflated and not (case.out_of_memory and model.packed):
        return None
    method = model.named if model.named in _SECTION else "gptq" if any(name.endswith(".g_idx") for name in model.tensors) else "awq"
    stated = case.launch.config["quantization"]
    files = f", the files hold {stored.value:.2f} GiB" if stored else ""
    files_zh = f"，文件共 {stored.value:.2f} GiB" if stored else ""
    packed = f"{model.packed} is packed" if model.packed else f"the name says {model.named}"
    packed_zh = f"{model.packed} 是打包张量" if model.packed else f"名称标明 {model.named}"
    size = f" at full size, about {full:.1f} GiB" if full else " at full size"
    evidence: list[Quote] = [stated.quote]
    if failure is not None:
        evidence.append(failure.oom.hit.quote())
    if model.packed:
        evidence.append(case.context.quote("model.tensors", model.packed))
    if stored:
        evidence.append(stored.quote)
    return Found(
        cause=Words(
            f"The checkpoint is quantised ({packed}{files}), but its config.json has no quantization_config, so the engine says quantization=None and builds the layers unquantised{size} in"
            f" {model.dtype or 'float16'}. A card with more memory or another memory setting would hide the fault and still load it wrongly.",
            f"检查点是量化的（{packed_zh}{files_zh}），但 config.json 没有 quantization_config，引擎显示 quantization=None，按未量化的全尺寸{f'（约 {full:.1f} GiB）' if full else ''}"
            f"以 {model.dtype or 'float16'} 建层。换更大的卡或改显存参数只会掩盖错误，加载结果仍然是错的。",
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words(
                    "restore the section quantization_config (method, bits, group size) in config.json: copy config.json, or quantize_config.json / quant_config.json, from the original repository",
                    "在 config.json 中恢复 quantization_config 段（方法、位数、组大小）：从原仓库复制 config.json，或 quantize_config.json / quant_config.json",
                ),
                _SECTION[method],
            ),
            Fix(Words("or fetch the whole original checkpoint again instead of the copy", "或重新获取完整的原始检查点，而不是这份副本")),
        ],
        verify=Words(
            f"the init line shows quantization={method} (or {method}_marlin), and `Model loading took` is near "
            + (f"{stored.value:.1f} GiB" if stored else "the size of the files"),
            f"初始化行显示 quantization={method}（或 {method}_marlin），`Model loading took` 接近"
            + (f" {stored.value:.1f} GiB" if stored else "文件大小"),
        ),
        confidence=STATED if model.packed else 0.8,
        weight="fatal" if case.out_of_memory else "degraded",
    )


def _upcast(case: Case) -> Found | None:
    """float32 while the files hold 16 bits."""
    dtype, stored = case.launch.fact("dtype"), case.model.stored_dtype
    if dtype is None or dtype.value.removeprefix("torch.") not in ("float32", "float") or stored not in ("bfloat16", "float16"):
        return None
    full = case.model.gib(32)
    sizes = f": about {full:.1f} GiB instead of {full / 2:.1f}" if full else ": twice the memory"
    sizes_zh = f"：约 {full:.1f} GiB，而不是 {full / 2:.1f} GiB" if full else "：内存翻倍"
    return Found(
        cause=Words(
            f"The checkpoint holds {stored} weights and the engine loads them as float32{sizes}.",
            f"检查点是 {stored} 权重，引擎却按 float32 加载{sizes_zh}。",
        ),
        evidence=[dtype.quote, case.out_of_memory[0].hit.quote()],
        fixes=[Fix(Words("load the weights in their own dtype", "按权重自身的 dtype 加载"), f"--dtype {stored}")],
        verify=Words(
            f"the init line shows dtype=torch.{stored} and `Model loading took` halves",
            f"初始化行显示 dtype=torch.{stored}，`Model loading took` 减半",
        ),
        confidence=0.9,
        title=Words("Weights are loaded at twice their size", "权重以两倍大小加载"),
        explains=("O5", "O7", "O11", "O1"),
    )


RULES: Final = (
    Rule(
        id="O5",
        title=Words("The weights are larger than the device", "权重大于显存"),
        symptoms=Words(
            "`torch.OutOfMemoryError: ... Tried to allocate` while weights are created or loaded and the own use is near the total; llama.cpp `unable to allocate CUDA0 buffer`",
            "创建或加载权重时 `torch.OutOfMemoryError: ... Tried to allocate`，且自身占用接近总量；llama.cpp `unable to allocate CUDA0 buffer`",
        ),
        why=Words("sum of the tensors by dtype is above the total less 1 GiB", "按 dtype 求和的张量大小超过总量减 1 GiB"),
        needs=Words("sizes from the headers, the device's total", "文件头中的大小、设备总量"),
        remedy=Words(
            "quantised weights, a split over cards, a smaller model; llama.cpp: fewer layers on the device",
            "量化权重、多卡切分、更小的模型；llama.cpp：减少上卡层数",
        ),
        check=Words("weights + 1 GiB are below the total", "权重 + 1 GiB 小于总量"),
        judge=weights_larger_than_card,
        sees=(*MOMENT_SIGHTS, *LLAMA_SIGHTS),
    ),
    Rule(
        id="O14",
        title=Words("A quantised model is loaded unquantised", "量化模型按未量化加载"),
        symptoms=Words(
            "`quantization=None` and out of memory for a repository named AWQ, GPTQ or int4; `qweight` tensors in the files",
            "名为 AWQ、GPTQ、int4 的仓库却显示 `quantization=None` 并显存不足；文件中有 `qweight` 张量",
        ),
        why=Words("config.json lost its quantization section, or the dtype is float32", "config.json 丢了量化段，或 dtype 为 float32"),
        needs=Words(
            "quantization_config of config.json, quantize_config.json, tensor names",
            "config.json 的 quantization_config、quantize_config.json、张量名",
        ),
        remedy=Words("restore the section (method, bits, group size), or the dtype", "恢复该段（方法、位数、组大小）或 dtype"),
        check=Words(
            "`quantization=` in the init line, `Model loading took` near the file size",
            "初始化行的 `quantization=`，`Model loading took` 接近文件大小",
        ),
        judge=loaded_unquantised,
        explains=("O5",),
    ),
)
