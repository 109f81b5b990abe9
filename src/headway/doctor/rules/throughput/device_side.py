"""The device computes slower than it could: untuned kernels (T13), sockets (T15), heat (T16), adapters on a CPU (T19)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.cpu_threads import cpu_list
from headway.doctor.facts.load import shape_of
from headway.doctor.facts.metrics import scrapes_of
from headway.doctor.facts.processor_use import gpu_use, on_cpu
from headway.doctor.finding import Abstention, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

DEFAULT_MOE: Final = sight(
    "Using default MoE config",
    "Using MoE kernel config with down_moe=",
    pattern=r"[Uu]sing (?:default )?MoE (?:kernel )?config(?:.*?['\" ](?P<file>/[^'\"\]\s]+\.json))?",
)
BINDING: Final = sight("auto thread-binding list", "OMP tid: ", pattern=r"auto thread-binding list \(id, physical core\): (?P<pairs>\[.*)|OMP tid: \d+, core (?P<core>\d+)")
NUMA_BALANCING: Final = sight("numa_balancing is enabled")
CPU_HOT: Final = sight("cpu clock throttled", "Core temperature above threshold", "CPU temperature above threshold")
GPU_SLOWDOWN: Final = sight(
    "Slowdown",
    "Power Brake",
    "SW Power Cap",
    pattern=r"(?:(?:HW|SW) (?:Thermal )?Slowdown|(?:HW )?Power Brake(?: Slowdown)?|SW Power Cap)\s*:\s*Active",
)
LORA_NATIVE: Final = sight("does not support custom kernels for LoRA", "LoRA is not supported with torch.compile", "disabling torch.compile because of LoRA")

_READING_SPEED: Final = 8.0  # tokens/s of one sequence
_CLOCK: Final = re.compile(r"(?i)(?:sm|gpu|graphics).*(?:clock|mhz)")
_EXPERTS: Final = re.compile(r"E=(?P<experts>\d+),N=(?P<width>\d+),device_name=(?P<device>[\w.\-]+?)(?:,dtype=(?P<dtype>\w+))?(?:,block_shape=[^.]*)?\.json")


def untuned_experts(case: Case) -> Found | None:
    hit = case.log.first(DEFAULT_MOE)
    if hit is None:
        return None
    shape, gpu = shape_of(case.load), gpu_use(case.context)
    expected = _expected(case)
    rate = shape.generation_rate if shape else None
    low = expected is not None and rate is not None and rate < 0.75 * expected[0]
    reached = expected is not None and rate is not None and not low
    busy = gpu is not None and gpu.value >= 0.9 and rate is not None
    complaint = complains_of(case.context, "throughput")
    confidence = 0.9 if low else 0.4 if reached else 0.65 if complaint or busy else 0.45
    place = _EXPERTS.search(hit.line.text)
    file = hit["file"] or (place[0] if place else "")
    experts = f" ({place['experts']} experts of width {place['width']} on {place['device']})" if place else ""
    experts_zh = f"（{place['device']} 上 {place['experts']} 个宽度 {place['width']} 的专家）" if place else ""
    speed = f": {rate:.0f} tokens/s with {shape.running:g} running" if shape and rate else ""
    speed_zh = f"：{shape.running:g} 个请求在运行，共 {rate:.0f} tokens/s" if shape and rate else ""
    if low and expected and rate:
        speed, speed_zh = speed + f", {rate / expected[0]:.0%} of the expected {expected[0]:g}", speed_zh + f"，只有预期 {expected[0]:g} 的 {rate / expected[0]:.0%}"
    name = place[0] if place else "E=*,N=*,device_name=*.json"
    folder = file.rpartition("/")[0]
    model, tp = case.launch.model or "MODEL", int(case.launch.number("tensor_parallel_size") or 1)
    return Found(
        cause=Words(
            f"The MoE kernel runs with default tile sizes: there is no tuned file for this GPU and shape{experts}{speed}. The GPU is busy with poorly chosen tiles; batch and memory settings do not change that.",
            f"MoE kernel 用的是默认分块参数：没有适合该 GPU 和形状的调优文件{experts_zh}{speed_zh}。GPU 忙于效率低的分块；调整批次或内存参数没有作用。",
        ),
        evidence=[hit.quote(), *([shape.middle.quote] if shape else []), *([gpu.quote] if gpu else []), *([expected[1]] if expected else [])],
        fixes=[
            Fix(
                Words("run the MoE tuning benchmark for this GPU and shape", "针对该 GPU 和形状运行 MoE 调优基准"),
                f"python benchmarks/kernels/benchmark_moe.py --model {model} --tp-size {tp} --tune",
            ),
            Fix(
                Words(f"put the tuned config {name} where the message looks, or name its folder", f"把调优后的配置 {name} 放到日志所查找的位置，或指定其目录"),
                f"cp {name} {folder}/" if folder else "export VLLM_TUNED_CONFIG_FOLDER=$PWD",
            ),
        ],
        verify=Words("restart: the message is gone (`Using configuration from ...`); the same benchmark before and after", "重启：该消息消失（出现 `Using configuration from ...`）；同一基准测试前后对比"),
        confidence=confidence,
        weight="degraded" if confidence > 0.5 else "remark",
        explains=("T4",),
    )


def _expected(case: Case) -> tuple[float, Quote] | None:
    """Tokens/s that somebody expected or measured elsewhere, from the metrics."""
    for scrape in scrapes_of(case.context):
        for name, series in scrape.families.items():
            if re.search(r"(?i)(?:expected|baseline|reference).*(?:tok|throughput)", name) and series[0].value > 0:
                return series[0].value, case.context.quote(f"metrics.{scrape.index}", f"{name} {series[0].value:g}")
    return None


def across_sockets(case: Case) -> Found | Abstention | None:
    nodes = _numa_nodes(case)
    if (foreign := _far_from_gpu(case)) is not None:
        return foreign
    bind_path = next((path for path in ("env.VLLM_CPU_OMP_THREADS_BIND", "env.GOMP_CPU_AFFINITY", "host.affinity") if case.context.has(path)), None)
    balancing = case.log.first(NUMA_BALANCING)
    remote = _remote_share(case)
    if bind_path and len(nodes) > 1 and on_cpu(case.log, case.context, case.device):
        ranks = [cpu_list(rank) for rank in case.context.text(bind_path).split("|")]
        wide = [rank for rank in ranks if sum(1 for cores in nodes.values() if set(cores) & set(rank)) > 1]
        bothers = bind_path != "host.affinity" or remote is not None or complains_of(case.context, "throughput")
        if wide and bothers and shape_of(case.load) is not None:
            return _sockets(case, nodes, case.context.quote(bind_path), remote)
    bound = _bound_cores(case)
    if bound is not None and len(nodes) > 1 and shape_of(case.load) is not None and len([1 for cores in nodes.values() if set(cores) & bound[0]]) > 1:
        return _sockets(case, nodes, bound[1], remote)
    if remote is not None and remote[0] >= 0.2:
        return _sockets(case, nodes, remote[1], remote)
    if balancing is not None and shape_of(case.load) is not None:
        return Found(
            cause=Words(
                "The kernel's automatic NUMA balancing is on: it moves the model's pages between sockets while threads read them, which slows every step on this host.",
                "内核的自动 NUMA 平衡处于开启状态：线程读取模型时内核在插槽之间迁移页面，拖慢该主机上的每一步。",
            ),
            evidence=[balancing.quote()],
            fixes=[Fix(Words("switch it off", "关闭它"), "echo 0 | sudo tee /proc/sys/kernel/numa_balancing")],
            verify=Words("cat /proc/sys/kernel/numa_balancing prints 0; the same benchmark before and after", "cat /proc/sys/kernel/numa_balancing 输出 0；同一基准测试前后对比"),
            confidence=0.6 if complains_of(case.context, "throughput") else 0.45,
            weight="degraded",
        )
    return None


def _sockets(case: Case, nodes: dict[int, tuple[int, ...]], quote: Quote, remote: tuple[float, Quote] | None) -> Found:
    listed = "; ".join(f"node {node}: {_range(cores)}" for node, cores in sorted(nodes.items()))
    shown, shown_zh = (f" ({listed})", f"（{listed}）") if listed else ("", "")
    share = f", {remote[0]:.0%} of the pages are on the other node" if remote else ""
    share_zh = f"，{remote[0]:.0%} 的页面在另一个节点上" if remote else ""
    count = max(2, len(nodes))
    bind = "|".join(_range(cores) for _, cores in sorted(nodes.items()))
    fixes = [Fix(Words("keep one process on one node, cores and memory (numactl in front of its command)", "让单个进程的核和内存都在一个节点上（在启动命令前加 numactl）"), _on_node(case, "0"))]
    if bind:
        fixes.insert(
            0,
            Fix(
                Words(f"run one rank per node and bind each to its own cores ({count} ranks)", f"每个节点运行一个 rank，并各自绑定到本节点的核（{count} 个 rank）"),
                f'VLLM_CPU_OMP_THREADS_BIND="{bind}" --tensor-parallel-size {count}',
            ),
        )
    return Found(
        cause=Words(
            f"Threads and memory are spread over {count} NUMA nodes{shown}{share}: a thread that reads the other socket's memory gets a fraction of the bandwidth, and every step waits for it.",
            f"线程和内存分布在 {count} 个 NUMA 节点上{shown_zh}{share_zh}：读取另一插槽内存的线程只能得到一部分带宽，每一步都要等它。",
        ),
        evidence=[quote, *([remote[1]] if remote and remote[1] != quote else [])],
        fixes=fixes,
        verify=Words("numastat -p $(pgrep -f EngineCore | head -1): almost all memory on the own node; tokens/s rises", "numastat -p $(pgrep -f EngineCore | head -1)：几乎全部内存在本节点；tokens/s 上升"),
        confidence=0.7,
        weight="degraded",
    )


def _on_node(case: Case, node: str) -> str | None:
    """The server's own command on one node; None when nothing tells what it was."""
    command = case.launch.command or (f"vllm serve {case.launch.model}" if case.launch.model and case.launch.program in ("vllm", "") else "")
    return f"numactl --cpunodebind={node} --membind={node} {command}" if command else None


def _numa_nodes(case: Case) -> dict[int, tuple[int, ...]]:
    """NUMA node -> its cores, from `host.numa` or from lscpu among the probes or the topology."""
    nodes: dict[int, tuple[int, ...]] = {}
    for index, node in enumerate(case.context.items("host.numa")):
        cores = node.get("cpus") if isinstance(node, dict) else node
        nodes[index] = cpu_list(str(cores))
    text = "\n".join([case.context.text("host.topology"), *map(str, case.context.items("host.probes"))])
    for found in re.finditer(r"(?i)node ?(\d+)(?: ?CPU\(s\)| ?cpus)?[:= ]+(\d[\d,\-]*)", text):
        if cores := cpu_list(found[2].strip(",")):
            nodes.setdefault(int(found[1]), cores)
    return {node: cores for node, cores in nodes.items() if cores}


def _bound_cores(case: Case) -> tuple[set[int], Quote] | None:
    """The cores that the CPU backend says it bound the threads of one process to."""
    hits = case.log.hits(BINDING)
    cores = {int(found) for hit in hits for found in re.findall(r"\((\d+), \d+\)", hit["pairs"])} or {int(hit["core"]) for hit in hits if hit["core"]}
    return (cores, hits[0].quote()) if cores else None


def _far_from_gpu(case: Case) -> Found | None:
    """The process runs on cores of one socket, the GPU hangs on the other."""
    allowed = set(cpu_list(case.context.text("host.affinity")))
    row = re.search(r"(?m)^\s*GPU0\b.*?\s(\d+-\d+(?:,\d+-\d+)*)(?:\s+(\d+))?\b", case.context.text("host.topology"))
    if not allowed or row is None or "Affinity" not in case.context.text("host.topology"):
        return None
    near = cpu_list(row[1])
    if not near or set(near) & allowed or shape_of(case.load) is None:
        return None
    here, node = _range(tuple(sorted(allowed))), row[2] or "1"
    return Found(
        cause=Words(
            f"The process may only run on cores {here}, but GPU 0 belongs to cores {row[1]} (NUMA node {node}): every launch and copy crosses the link between the sockets.",
            f"进程只能在核 {here} 上运行，而 GPU 0 属于核 {row[1]}（NUMA 节点 {node}）：每次启动 kernel 和拷贝都要跨插槽。",
        ),
        evidence=[case.context.quote("host.affinity", f"affinity {here}"), case.context.quote("host.topology", " ".join(row[0].split()))],
        fixes=[Fix(Words(f"bind the process and its memory to the node of the GPU (numactl in front of its command; cores {row[1]})", f"把进程及其内存绑定到 GPU 所在节点（在启动命令前加 numactl；核 {row[1]}）"), _on_node(case, node))],
        verify=Words(f"taskset -cp $(pgrep -f EngineCore | head -1) lists {row[1]}; the same benchmark before and after", f"taskset -cp $(pgrep -f EngineCore | head -1) 列出 {row[1]}；同一基准测试前后对比"),
        confidence=0.7,
        weight="degraded",
        explains=("T4",),
    )


def _remote_share(case: Case) -> tuple[float, Quote] | None:
    """Share of allocations or pages on a foreign node, from numastat's counters among the probes."""
    for index, probe in enumerate(case.context.items("host.probes")):
        text = str(probe)
        hits, misses = (re.search(rf"(?i){name}\D{{1,12}}(\d+)", text) for name in ("(?:numa_hit|local_node)", "(?:numa_miss|other_node)"))
        if hits and misses and int(hits[1]) + int(misses[1]):
            return int(misses[1]) / (int(hits[1]) + int(misses[1])), case.context.quote(f"host.probes.{index}")
        pages = [float(size) for size in re.findall(r"(?i)\bnode ?\d+\D{1,4}(\d+(?:\.\d+)?) ?[MG]i?B", text)] if "numastat" in text else []
        if len(pages) > 1 and max(pages) > 0 and on_cpu(case.log, case.context, case.device):
            return 1 - max(pages) / sum(pages), case.context.quote(f"host.probes.{index}")
    return None


def _range(cores: tuple[int, ...]) -> str:
    return f"{cores[0]}-{cores[-1]}" if cores and cores == tuple(range(cores[0], cores[-1] + 1)) else ",".join(map(str, cores[:16]))


def clocks_fall(case: Case) -> Found | None:
    found = _throttling(case)
    if found is None:
        return None
    en, zh, quotes, power = found
    shape = shape_of(case.load)
    return Found(
        cause=Words(
            f"The clocks fall under load: {en}. The same step takes longer the longer the load lasts; no serving option changes that.",
            f"负载下频率下降：{zh}。负载持续越久，同样的一步耗时越长；任何服务参数都无法改变。",
        ),
        evidence=[*quotes, *([shape.last.quote] if shape else [])],
        fixes=[
            Fix(
                Words("cool it: fans, airflow, dust, inlet temperature, fewer neighbours under load", "改善散热：风扇、风道、灰尘、进风温度，减少相邻满载的卡"),
            ),
            Fix(Words("raise the power limit as far as the card and the supply allow", "在显卡和电源允许的范围内提高功耗上限"), "nvidia-smi -q -d POWER; sudo nvidia-smi -pl $(nvidia-smi --query-gpu=power.max_limit --format=csv,noheader,nounits | head -1)")
            if power
            else Fix(Words("watch clocks and temperature during the load", "在负载期间观察频率和温度"), "nvidia-smi dmon -s pc -d 5"),
        ],
        verify=Words("nvidia-smi -q -d PERFORMANCE under load: every slowdown reason says `Not Active`; clocks stay flat", "负载下 nvidia-smi -q -d PERFORMANCE：各降频原因均为 `Not Active`；频率保持平稳"),
        confidence=0.8,
        weight="degraded",
    )


def _throttling(case: Case) -> tuple[str, str, list[Quote], bool] | None:
    """Reasons that are active, a clock that falls over the samples, or the kernel's words."""
    for index, probe in enumerate(case.context.items("host.probes")):
        if found := GPU_SLOWDOWN.pattern.search(str(probe)):
            return f"`{found[0]}`", f"`{found[0]}`", [case.context.quote(f"host.probes.{index}")], "Power" in found[0]
    if hit := case.log.first(GPU_SLOWDOWN):
        return f"`{hit.match[0]}`", f"`{hit.match[0]}`", [hit.quote()], "Power" in hit.match[0]
    for index in range(len(case.context.items("host.gpus"))):
        path = f"host.gpus.{index}"
        numbers = {name: value for name in case.context.members(path) if "clock" in name and (value := case.context.number(f"{path}.{name}"))}
        top = max((value for name, value in numbers.items() if "max" in name), default=None)
        now = next((value for name, value in numbers.items() if "max" not in name), None)
        reason = next((case.context.text(f"{path}.{name}") for name in case.context.members(path) if re.search(r"throttl|slowdown", name)), "")
        if reason and not re.fullmatch(r"(?i)none|no|false|0|idle|not active", reason):
            return f"GPU {index} reports `{reason[:60]}`", f"GPU {index} 报告 `{reason[:60]}`", [case.context.quote(path, reason)], "ower" in reason
        if now and top and now < 0.75 * top and (case.context.number(f"{path}.util_percent") or 0) >= 80:
            heat = case.context.number(f"{path}.temperature_c")
            at = f" at {heat:g} °C" if heat else ""
            return f"GPU {index} runs at {now:g} of {top:g} MHz{at}", f"GPU {index} 频率 {now:g}/{top:g} MHz{at}", [case.context.quote(path, f"sm_clock_mhz {now:g}, max {top:g}")], False
    clocks = [(scrape, value) for scrape in scrapes_of(case.context) if (value := scrape.highest(*(name for name in scrape.families if _CLOCK.search(name)))) is not None]
    use = gpu_use(case.context)
    if len(clocks) >= 3 and clocks[-1][1] < 0.8 * clocks[0][1] and (use is None or use.value >= 0.8):
        first, last = clocks[0], clocks[-1]
        return f"from {first[1]:g} to {last[1]:g} MHz", f"从 {first[1]:g} 降到 {last[1]:g} MHz", [case.context.quote(f"metrics.{last[0].index}", f"SM clock {last[1]:g} MHz, at first {first[1]:g}")], False
    if (hot := case.log.first(CPU_HOT)) is not None:
        return "the kernel reports `" + hot.match[0] + "`", "内核报告 `" + hot.match[0] + "`", [hot.quote()], False
    return None


def adapters_on_cpu(case: Case) -> Found | None:
    lora = case.launch.fact("enable_lora")
    if lora is None or lora.value.lower() not in ("true", "1") or not on_cpu(case.log, case.context, case.device):
        return None
    said, shape = case.log.first(LORA_NATIVE), shape_of(case.load)
    complaint = complains_of(case.context, "throughput")
    speed = f" Now: {shape.generation_rate:.1f} tokens/s with {shape.running:g} running." if shape and shape.generation_rate is not None else ""
    speed_zh = f"目前 {shape.running:g} 个请求在运行，共 {shape.generation_rate:.1f} tokens/s。" if shape and shape.generation_rate is not None else ""
    return Found(
        cause=Words(
            f"LoRA is on and the engine computes on a CPU: there the adapters run as plain PyTorch operations and compilation of the model is off.{speed}",
            f"启用了 LoRA 且引擎在 CPU 上计算：此时适配器以普通 PyTorch 算子运行，模型编译被关闭。{speed_zh}",
        ),
        evidence=[lora.quote, *([said.quote()] if said else []), *([shape.middle.quote] if shape else [])],
        fixes=[
            Fix(
                Words("merge the adapter into the weights once and serve the merged model without --enable-lora", "把适配器一次性合并进权重，不带 --enable-lora 提供合并后的模型"),
                "python -c \"import sys; from peft import AutoPeftModelForCausalLM as M; M.from_pretrained(sys.argv[1]).merge_and_unload().save_pretrained(sys.argv[2])\" ./adapter ./merged",
            )
        ],
        verify=Words("the same benchmark with the merged model: tokens/s rises", "用合并后的模型跑同一基准测试：tokens/s 上升"),
        confidence=0.7 if said and shape else 0.6 if complaint else 0.55 if shape and (shape.per_request or _READING_SPEED) < _READING_SPEED else 0.45,
        weight="degraded",
    )


_SAME_BENCHMARK: Final = Words("the same benchmark before and after", "同一基准测试前后对比")

RULES: Final = (
    Rule(
        id="T13",
        title=Words("The MoE kernel is not tuned for this GPU", "MoE kernel 未针对该 GPU 调优"),
        symptoms=Words("`Using default MoE config. Performance might be sub-optimal`", "`Using default MoE config. Performance might be sub-optimal`"),
        why=Words("tile sizes are looked up by GPU and shape; without a file a default is used", "分块参数按 GPU 和形状查表；没有文件就用默认值"),
        needs=Words("the message, tokens/s, what is expected", "该消息、tokens/s、预期值"),
        remedy=Words("run the MoE tuning benchmark, put its file where the message looks", "运行 MoE 调优基准，把文件放到日志所查找的位置"),
        check=_SAME_BENCHMARK,
        judge=untuned_experts,
        sees=(DEFAULT_MOE,),
    ),
    Rule(
        id="T15",
        title=Words("Threads or memory across sockets", "线程或内存跨插槽"),
        symptoms=Words("a binding that spans NUMA nodes, remote pages", "绑核跨越 NUMA 节点、远端页面"),
        why=Words("memory of the other socket is read at a fraction of the bandwidth", "读取另一插槽的内存只有部分带宽"),
        needs=Words("lscpu, numastat, the binding", "lscpu、numastat、绑核设置"),
        remedy=Words("one rank per node, cores and memory bound", "每节点一个 rank，绑定核与内存"),
        check=_SAME_BENCHMARK,
        judge=across_sockets,
        sees=(NUMA_BALANCING, BINDING),
    ),
    Rule(
        id="T16",
        title=Words("Heat or a power cap lowers the clocks", "过热或功耗上限导致降频"),
        symptoms=Words("clocks fall under load, slowdown reasons are active", "负载下频率下降、降频原因处于激活状态"),
        why=Words("the card protects itself", "显卡的自我保护"),
        needs=Words("clocks, temperature, power and slowdown reasons under load", "负载下的频率、温度、功耗与降频原因"),
        remedy=Words("cooling, a higher power limit", "改善散热、提高功耗上限"),
        check=_SAME_BENCHMARK,
        judge=clocks_fall,
        sees=(CPU_HOT, GPU_SLOWDOWN),
    ),
    Rule(
        id="T19",
        title=Words("LoRA on a CPU switches compilation off", "CPU 上启用 LoRA 会关闭编译"),
        symptoms=Words("`enable_lora` on the CPU backend", "CPU 后端启用 `enable_lora`"),
        why=Words("there are no adapter kernels for CPUs", "CPU 没有适配器专用 kernel"),
        needs=Words("platform and flags", "平台和参数"),
        remedy=Words("merge the adapter into the weights", "把适配器合并进权重"),
        check=_SAME_BENCHMARK,
        judge=adapters_on_cpu,
        sees=(LORA_NATIVE,),
    ),
)
