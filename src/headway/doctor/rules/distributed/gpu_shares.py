"""The split does not fit: the number of heads (D1), the number of GPUs (D2), the GPUs of a node (D16)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import (
    Split,
    divisors,
    gpus_on_host,
    serve_command,
    split_of,
    visibility,
    visible_gpus,
)
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

HEADS: Final = sight(
    "must be divisible by",
    "must be a multiple of",
    pattern=r"heads\D{0,24}(?P<heads>\d+)\D{1,60}?(?:divisible by|multiple of)\D{1,60}?(?P<size>\d+)",
)
UNEVEN: Final = sight("is not divisible by", pattern=r"\b(?P<whole>\d{1,12}) is not divisible by (?P<size>\d+)")
TOO_FEW: Final = sight(
    "is larger than the number of available GPUs",
    "max local gpu count",
    "the number of visible devices",
    "larger than the number of available",
    "greater than the number of available",
    "exceeds the number of available",
    pattern=r"(?:[Ww]orld[ _]size|[Tt]ensor[ _]parallel(?:[ _]size)?)\D{0,40}(?P<world>\d+)\)?"
    r" (?:is |cannot be |must not be |must be |to )?(?:larger|greater|less|exceeds)\D{0,80}?(?P<gpus>\d+)",
)
NO_SUCH_DEVICE: Final = sight("invalid device ordinal", pattern=r"(?P<what>(?:CUDA|HIP) error: )?invalid device ordinal")
SPREAD: Final = sight(
    "is bigger than a reserved number of",
    pattern=r"tensor_parallel_size=(?P<size>\d+) is bigger than a reserved number of \w+ \((?P<gpus>\d+) \w+\) in a node(?: (?P<node>[\w:-]+(?:\.[\w:-]+)*))?",
)


def heads_do_not_divide(case: Case) -> Found | None:
    """Divisors of the number of heads, up to the number of GPUs."""
    hit = case.log.first(HEADS)
    uneven = case.log.first(UNEVEN)
    if hit is not None:
        whole, size, what = int(hit["heads"]), int(hit["size"]), Words("attention heads", "个注意力头")
    elif uneven is not None and split_of(case).tensor == int(uneven["size"]) > 1:
        hit, whole, size = uneven, int(uneven["whole"]), int(uneven["size"])
        what = Words("rows of a weight", "行权重")
    else:
        return None
    gpus = visible_gpus(case) or gpus_on_host(case)
    limit = gpus or size
    fitting = [each for each in divisors(whole, limit) if _keeps_kv_heads(case, each)] or [1]
    listed = ", ".join(map(str, reversed(fitting)))
    have = Words(f" with {gpus} GPUs here" if gpus else "", f"（本机 {gpus} 张 GPU）" if gpus else "")
    quotes = [hit.quote()] + ([case.context.quote("host.gpus", f"{gpus} GPUs")] if gpus_on_host(case) else [])
    return Found(
        cause=Words(
            f"The model has {whole} {what.en}, which {size} ranks cannot share evenly ({whole} / {size} = {whole / size:.2f}). Sizes that divide {whole}"
            f"{have.en}: {listed}. Only divisibility counts; powers of two are not required.",
            f"模型有 {whole} {what.zh}，无法平均分给 {size} 个 rank（{whole} / {size} = {whole / size:.2f}）。能整除 {whole} 的大小{have.zh}：{listed}。"
            "只要求整除，并不要求是 2 的幂。",
        ),
        evidence=quotes,
        fixes=_splits(fitting, limit),
        verify=Words(
            f"`python -c 'print({whole} % {fitting[0]})'` prints 0, and the next start goes past `Resolved architecture` to `Starting to load model`",
            f"`python -c 'print({whole} % {fitting[0]})'` 输出 0，且下次启动越过 `Resolved architecture`，到达 `Starting to load model`",
        ),
        confidence=STATED if what.en == "attention heads" else 0.85,
    )


def _keeps_kv_heads(case: Case, size: int) -> bool:
    """Key heads are shared out or copied whole."""
    heads = case.context.number("model.config.num_key_value_heads")
    return not heads or int(heads) % size == 0 or size % int(heads) == 0


def _splits(fitting: list[int], gpus: int) -> list[Fix]:
    largest = fitting[0]
    fixes = []
    if largest > 1:
        others = Words("", "")
        if smaller := [each for each in fitting[1:] if each > 1]:
            shown = ", ".join(map(str, smaller))
            others = Words(f" (also possible: {shown})", f"（也可用：{shown}）")
        fixes.append(Fix(Words(f"split over {largest} GPUs{others.en}", f"拆分到 {largest} 张 GPU{others.zh}"), f"--tensor-parallel-size {largest}"))
    full = next(((tensor, gpus // tensor) for tensor in fitting if gpus % tensor == 0 and gpus // tensor > 1), None)
    if full:
        tensor, stages = full
        fixes.append(
            Fix(
                Words(
                    f"use all {gpus} GPUs with pipeline stages, which split layers and not heads",
                    f"用流水线并行使用全部 {gpus} 张 GPU（按层切分，不切注意力头）",
                ),
                f"--tensor-parallel-size {tensor} --pipeline-parallel-size {stages}",
            )
        )
    return fixes or [Fix(Words("run the model on one GPU", "在单张 GPU 上运行"), "--tensor-parallel-size 1")]


def more_ranks_than_gpus(case: Case) -> Found | None:
    hit = case.log.first(TOO_FEW)
    if hit is not None:
        return _too_few(case, hit, int(hit["world"]), int(hit["gpus"]), STATED)
    hit = case.log.first(NO_SUCH_DEVICE)
    gpus = visible_gpus(case) or gpus_on_host(case)
    world = split_of(case).world
    if hit is not None and gpus and world > gpus:
        return _too_few(case, hit, world, gpus, 0.9)
    return None


def _too_few(case: Case, hit: Hit, world: int, gpus: int, confidence: float) -> Found:
    split, present, visible = split_of(case), gpus_on_host(case), visibility(case)
    hidden = present is not None and present >= world
    quotes: list[Quote] = [hit.quote()]
    if visible is not None:
        quotes.append(visible.quote)
    factors = f" ({split.tensor} x {split.pipeline})" if split.world == world and split.pipeline > 1 else ""
    why = Words("", "")
    if hidden:
        why = Words(
            f" The host has {present} GPUs, so {present - gpus if present else 0} of them are hidden from this process.",
            f"主机共有 {present} 张 GPU，其中 {present - gpus if present else 0} 张对该进程不可见。",
        )
    elif present is not None:
        why = Words(f" The host lists {present} GPUs.", f"主机列出 {present} 张 GPU。")
    return Found(
        cause=Words(
            f"The split asks for {world} ranks{factors}, one GPU each, and this process sees {gpus}.{why.en} Memory settings do not change that.",
            f"并行配置需要 {world} 个 rank{factors}，每个一张 GPU，而该进程只看到 {gpus} 张。{why.zh}调整显存参数无济于事。",
        ),
        evidence=quotes,
        fixes=_more_or_fewer(case, split, world, gpus, hidden),
        verify=Words(
            f"`nvidia-smi -L | wc -l` run where the server runs (inside its container) prints at least the number of ranks asked for ({world} now)",
            f"在服务运行处（容器内）执行 `nvidia-smi -L | wc -l`，结果不少于所需 rank 数（目前为 {world}）",
        ),
        confidence=confidence,
        explains=("L19", "D9"),
    )


def _more_or_fewer(case: Case, split: Split, world: int, gpus: int, hidden: bool) -> list[Fix]:
    fixes = []
    listed = ",".join(map(str, range(world)))
    if hidden:
        fixes.append(Fix(Words(f"let the process see {world} GPUs", f"让进程看到 {world} 张 GPU"), f"CUDA_VISIBLE_DEVICES={listed}"))
    elif visibility(case) is not None:
        fixes.append(
            Fix(
                Words(f"if the host has {world} GPUs (`nvidia-smi -L` outside lists them), let the process see them", f"如果主机有 {world} 张 GPU（在外部执行 `nvidia-smi -L` 可列出），让进程看到它们"),
                f"CUDA_VISIBLE_DEVICES={listed}",
            )
        )
    if case.context.get("host.in_container") is True:
        fixes.append(Fix(Words("give all GPUs of the host to the container", "把主机的全部 GPU 交给容器"), "docker run --gpus all"))
    tensor = divisors(split.tensor if split.world == world else world, max(1, gpus))[0]
    stages = " --pipeline-parallel-size 1" if split.pipeline > 1 else ""
    fixes.append(
        Fix(
            Words(f"split over the {gpus} GPU{'s' if gpus != 1 else ''} that can be seen", f"按可见的 {gpus} 张 GPU 拆分"),
            f"--tensor-parallel-size {tensor}{stages}",
        )
    )
    nodes = -(-world // max(1, gpus))
    if not hidden and gpus:
        fixes.append(
            Fix(
                Words(
                    f"{nodes} nodes of {gpus} GPU{'s' if gpus != 1 else ''} on purpose: the same command on each, with its own --node-rank (0 to {nodes - 1}),"
                    " the others also with --headless",
                    f"有意使用 {nodes} 个节点（每个 {gpus} 张 GPU）：各节点执行同一命令，--node-rank 依次为 0 到 {nodes - 1}，其余节点再加 --headless",
                ),
                serve_command(
                    case,
                    f"--tensor-parallel-size {split.tensor} --pipeline-parallel-size {split.pipeline} --nnodes {nodes} --node-rank 0"
                    " --master-addr $(hostname -i) --master-port 29501",
                )
                if split.world == world
                else f"--nnodes {nodes} --node-rank 0 --master-addr $(hostname -i) --master-port 29501",
            )
        )
    return fixes


def tensor_ranks_cross_nodes(case: Case) -> Found | None:
    """Works, but every layer then waits for the network between the nodes."""
    hit = case.log.first(SPREAD)
    counts = [int(node["gpus"]) for node in case.context.items("host.ray.nodes") if isinstance(node, dict) and isinstance(node.get("gpus"), int)]
    if hit is not None:
        size, gpus, node, quote = int(hit["size"]), int(hit["gpus"]), hit["node"] or "a node", hit.quote()
    elif counts and 0 < max(counts) < split_of(case).tensor and sum(counts) >= split_of(case).world:
        size, gpus, node = split_of(case).tensor, max(counts), "a node"
        quote = case.context.quote("host.ray.nodes", f"{len(counts)} nodes of {', '.join(map(str, counts))} GPUs")
    else:
        return None
    tensor = divisors(size, max(1, gpus))[0]
    stages = size // tensor
    return Found(
        cause=Words(
            f"Tensor parallel size is {size}, {node} offers {gpus} GPUs: one layer is split over {-(-size // max(1, gpus))} nodes and every layer waits"
            " for an all-reduce over the network.",
            f"张量并行大小为 {size}，而节点 {node} 只有 {gpus} 张 GPU：每一层被拆到 {-(-size // max(1, gpus))} 个节点，每层都要等待跨网络的 all-reduce。",
        ),
        evidence=[quote],
        fixes=[
            Fix(
                Words(
                    f"keep tensor ranks inside a node ({tensor}) and make the nodes pipeline stages ({stages})",
                    f"张量并行限制在节点内（{tensor}），节点之间用流水线并行（{stages}）",
                ),
                f"--tensor-parallel-size {tensor} --pipeline-parallel-size {stages}",
            )
        ],
        verify=Words(
            "start again: the warning `is bigger than a reserved number of` is gone, and the same benchmark gives more tokens/s",
            "重新启动：不再出现 `is bigger than a reserved number of` 警告，同一基准测试的 tokens/s 提高",
        ),
        confidence=0.9 if hit is not None else 0.7,
        weight="degraded",
    )


RULES: Final = (
    Rule(
        id="D1",
        title=Words("Attention heads do not divide by the tensor parallel size", "注意力头数不能被张量并行大小整除"),
        symptoms=Words(
            "`attention heads (N) must be divisible by tensor parallel size (M)`", "`attention heads (N) must be divisible by tensor parallel size (M)`"
        ),
        why=Words("each rank gets the same number of heads", "每个 rank 分到同样多的头"),
        needs=Words("the number of heads and of GPUs", "注意力头数与 GPU 数"),
        remedy=Words("a divisor of the number of heads, or pipeline stages", "取头数的约数，或改用流水线并行"),
        check=Words("the start goes on to loading", "启动进入加载阶段"),
        judge=heads_do_not_divide,
        sees=(HEADS, UNEVEN),
    ),
    Rule(
        id="D2",
        title=Words("More ranks than GPUs", "rank 数多于可用 GPU"),
        symptoms=Words("`World size (W) is larger than the number of available GPUs (n)`", "`World size (W) is larger than the number of available GPUs (n)`"),
        why=Words("GPUs are hidden, or the split is meant for several nodes", "GPU 被隐藏，或该拆分本应跨多个节点"),
        needs=Words("visible devices, container flags", "可见设备与容器参数"),
        remedy=Words("make them visible, a smaller split, or several nodes on purpose", "让 GPU 可见、减小拆分，或有意使用多节点"),
        check=Words("`nvidia-smi -L` where the server runs", "在服务运行处执行 `nvidia-smi -L`"),
        judge=more_ranks_than_gpus,
        sees=(TOO_FEW, NO_SUCH_DEVICE),
    ),
    Rule(
        id="D16",
        title=Words("Tensor ranks do not fit into one node", "张量并行的 rank 超出单个节点"),
        symptoms=Words("`is bigger than a reserved number of GPUs`", "`is bigger than a reserved number of GPUs`"),
        why=Words("one layer is split over several nodes", "同一层被拆到多个节点"),
        needs=Words("GPUs of each node", "每个节点的 GPU 数"),
        remedy=Words("tensor parallel inside nodes, pipeline parallel between them", "节点内张量并行，节点间流水线并行"),
        check=Words("the same benchmark before and after", "修改前后跑同一基准测试"),
        judge=tensor_ranks_cross_nodes,
        sees=(SPREAD,),
    ),
)
