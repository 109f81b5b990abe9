"""Quantised weights that do not survive the split over ranks: groups cut through (Q7), an order of their own (Q8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NOT_ALIGNED: Final = sight(
    "is not aligned with the quantized weight", "is not divisible by min_thread", "is not divisible by group_size", "is not divisible by weight quantization block",
    "not divisible by group size", "is not divisible by  group_size",
    pattern=r"[Tt]he (?P<side>input|output) size is not aligned with the quantized weight shape"
    r"|(?:Weight |The )?(?P<what>[\w' ]{0,60}?(?:size|partition|weight)\w{0,40}) = (?P<part>\d+) is not divisible by (?:weight quantization )?(?P<unit_name>min_thread_[kn]|group_size|block_[nk]) = (?P<unit>\d+)"
    r"|in(?:put)?[_ ]?(?:features|size)\D{0,20}(?P<part2>\d+)\D{0,40}not divisible by group size\D{0,4}(?P<unit2>\d+)",
)  # fmt: skip
ACT_ORDER: Final = sight(
    "act_order", "act-order", "desc_act", "actorder",
    pattern=r"^(?:(?>.*?(?:act[_-]?order|desc_act)\b).*?(?:not supported|unsupported|does not support|not support|cannot|can't|slow)|(?>.*?(?:does not support|doesn't support|not support|unsupported)).*?(?:act[_-]?order|desc_act))",
)  # fmt: skip
_GROUP: Final = 128


@dataclass(frozen=True, slots=True)
class Cut:
    """A dimension that is cut into `ranks` parts of which each must be a multiple of `unit`."""

    hit: Hit
    ranks: int
    whole: int | None
    unit: int
    name: str


def cut_of(case: Case) -> Cut | None:
    hit = case.log.first(NOT_ALIGNED)
    if hit is None:
        return None
    ranks = max(1, int(case.launch.number("tensor_parallel_size") or case.launch.number("tp_size") or 1))
    part = hit["part"] or hit["part2"]
    if part:
        return Cut(hit, ranks, int(part) * ranks, int(hit["unit"] or hit["unit2"]), (hit["what"] or "input size").strip())
    size = case.model.claim.get("group_size", case.model.claim.get("q_group_size"))
    unit = size if isinstance(size, int) and size > 0 else _GROUP
    for name, whole in _dimensions(case):
        if whole % ranks or (whole // ranks) % unit:
            return Cut(hit, ranks, whole, unit, name)
    return Cut(hit, ranks, None, unit, "input size")


def _dimensions(case: Case) -> list[tuple[str, int]]:
    """Inputs of the matrices that are split by rows."""
    config = case.model.config
    found = [(name, config.get(name)) for name in ("intermediate_size", "moe_intermediate_size", "hidden_size", "shared_expert_intermediate_size")]
    if case.model.shape is not None:
        found.append(("num_attention_heads x head_dim", case.model.shape.heads * case.model.shape.head_dim))
    return [(name, value) for name, value in found if isinstance(value, int) and value > 0]


def not_aligned(case: Case) -> Found | None:
    """(in features / ranks) mod group size must be 0."""
    cut = cut_of(case)
    if cut is None:
        return None
    each = (
        f"{cut.whole} / {cut.ranks} = {cut.whole / cut.ranks:g}, and {cut.whole / cut.ranks:g} / {cut.unit} = {cut.whole / cut.ranks / cut.unit:g} groups"
        if cut.whole
        else f"divided by {cut.ranks} is no multiple of the group size"
    )
    each_zh = (
        f"{cut.whole} / {cut.ranks} = {cut.whole / cut.ranks:g}，{cut.whole / cut.ranks:g} / {cut.unit} = {cut.whole / cut.ranks / cut.unit:g} 组"
        if cut.whole
        else f"除以 {cut.ranks} 后不是组大小的整数倍"
    )
    if cut.ranks == 1:
        cause = Words(
            f"A quantised matrix does not consist of whole groups of {cut.unit} ({cut.name}: {each}) although nothing is split: the checkpoint quantises a layer that it should have left alone, or its configuration states another group size.",
            f"虽然没有切分，但有量化矩阵不是 {cut.unit} 的整组（{cut.name}：{each_zh}）：检查点量化了不该量化的层，或配置写错了组大小。",
        )
        fixes = [
            Fix(
                Words(
                    "take another quantised checkpoint of this model, or correct group_size and modules_to_not_convert in its config.json",
                    "换该模型的另一个量化检查点，或修正 config.json 中的 group_size 与 modules_to_not_convert",
                )
            )
        ]
    else:
        cause = Words(
            f"Over {cut.ranks} ranks the quantisation groups are cut through: {cut.name} {each}. Groups{f' of {cut.unit}' if cut.whole else ''} must stay whole, so this split cannot load; memory is not the reason.",
            f"{cut.ranks} 路切分会切断量化组：{cut.name} {each_zh}。{f'{cut.unit} 的组' if cut.whole else '组'}必须完整，因此这种切分无法加载；与显存无关。",
        )
        fixes = _other_splits(case, cut)
    return Found(
        cause=cause,
        evidence=[
            cut.hit.quote(),
            *([case.context.quote(f"model.config.{cut.name}", f"{cut.name}: {cut.whole}")] if cut.whole and cut.name in case.model.config else []),
        ],
        fixes=fixes,
        verify=Words(
            "start again: the shards load (`Loading weights took`), and a probe prompt is sane",
            "重新启动：分片加载成功（`Loading weights took`），测试提示正常",
        ),
        confidence=STATED,
    )


def _other_splits(case: Case, cut: Cut) -> list[Fix]:
    heads = case.model.heads
    wholes = [whole for _, whole in _dimensions(case)] or ([cut.whole] if cut.whole else [])
    fits = [
        ranks
        for ranks in range(2, cut.ranks + 1)
        if wholes and (heads % ranks == 0 if heads else ranks & (ranks - 1) == 0)  # heads are multiples of a power of two
        and all(whole % ranks == 0 and (whole // ranks) % cut.unit == 0 for whole in wholes)
    ]
    best = max((ranks for ranks in fits if ranks < cut.ranks), default=1)
    fixes = []
    if best > 1:
        rest = cut.ranks // best if cut.ranks % best == 0 else 0
        fixes.append(
            Fix(
                Words(
                    f"a split that keeps groups whole: {best} ranks ({cut.whole} / {best} = {cut.whole // best if cut.whole else 0})"
                    + (f", and {rest} stages to use all cards" if rest > 1 else ""),
                    f"保持组完整的切分：{best} 路（{cut.whole} / {best} = {cut.whole // best if cut.whole else 0}）"
                    + (f"，再用 {rest} 级流水线用满所有卡" if rest > 1 else ""),
                ),
                f"--tensor-parallel-size {best}" + (f" --pipeline-parallel-size {rest}" if rest > 1 else ""),
            )
        )
    fixes.append(
        Fix(
            Words(f"{cut.ranks} pipeline stages instead of a split: layers stay whole", f"用 {cut.ranks} 级流水线代替切分：每层保持完整"),
            f"--tensor-parallel-size 1 --pipeline-parallel-size {cut.ranks}",
        )
    )
    if (
        case.model.shape is not None
        and case.launch.value("enable_expert_parallel") == ""
        and any(name.startswith("moe") for name, _ in _dimensions(case))
    ):
        fixes.append(Fix(Words("or keep experts whole, each on one rank", "或让专家保持完整，各在一个 rank 上"), "--enable-expert-parallel"))
    smaller = next(
        (size for size in (64, 32) if cut.whole and cut.whole % cut.ranks == 0 and (cut.whole // cut.ranks) % size == 0 and size < cut.unit), None
    )
    if smaller is not None:
        fixes.append(Fix(Words(f"or a checkpoint with a group size of {smaller}", f"或组大小为 {smaller} 的检查点")))
    return fixes


def act_order(case: Case) -> Found | None:
    """desc_act: rows are grouped in an order of their own, so every rank needs all scales; slow, or refused."""
    hit = case.log.first(ACT_ORDER)
    ranks = int(case.launch.number("tensor_parallel_size") or 1)
    ordered = case.model.claim.get("desc_act") is True or str(case.model.claim.get("actorder", "")).lower() in ("group", "dynamic", "true")
    slow = ordered and ranks > 1 and complains_of(case.context, "throughput")
    if hit is None and not slow:
        return None
    refused = hit is not None and "slow" not in hit.line.text
    return Found(
        cause=Words(
            f"The checkpoint was quantised with act order (desc_act): its groups follow the order of importance, not of rows, so with {ranks} rank{'s' if ranks > 1 else ''} every rank needs all scales and kernels are"
            f" {'refused' if refused else 'slower'}.",
            f"检查点用 act order（desc_act）量化：分组按重要性而非行序，{ranks} 个 rank 时每个都需要全部 scale，内核{'被拒绝' if refused else '更慢'}。",
        ),
        evidence=[*([hit.quote()] if hit else []), *([case.context.quote("model.config.quantization_config")] if ordered else [])],
        fixes=[
            Fix(Words("take a checkpoint of this model with desc_act false (group size 128)", "使用该模型 desc_act 为 false 的检查点（组大小 128）")),
            Fix(
                Words("or stages instead of a split", "或用流水线代替切分"),
                f"--tensor-parallel-size 1 --pipeline-parallel-size {ranks}" if ranks > 1 else None,
            ),
        ],
        verify=Words("the load line appears, and tokens/s at the same load rise", "出现加载行，同样负载下 tokens/s 上升"),
        confidence=0.9 if hit is not None else 0.6,
        weight="fatal" if hit is not None and not case.startup.ready else "degraded",
    )


RULES: Final = (
    Rule(
        id="Q7",
        title=Words("Quantisation groups are cut by the split", "切分破坏了量化组"),
        symptoms=Words(
            "`The input size is not aligned with the quantized weight shape`, `is not divisible by group_size`",
            "`The input size is not aligned with the quantized weight shape`、`is not divisible by group_size`",
        ),
        why=Words("(in features / ranks) mod group size is not 0", "（输入维度 / rank 数）除以组大小有余数"),
        needs=Words("the dimensions, the group size, the number of ranks", "维度、组大小、rank 数"),
        remedy=Words("a number of ranks that divides, pipeline stages, another group size", "能整除的 rank 数、流水线、别的组大小"),
        check=Words("the start passes", "启动通过"),
        judge=not_aligned,
        sees=(NOT_ALIGNED,),
        explains=("Q20",),
    ),
    Rule(
        id="Q8",
        title=Words("Act order does not go with the split", "act order 与切分不合"),
        symptoms=Words("act order (desc_act) refused or slow with several ranks", "多 rank 时 act order（desc_act）被拒绝或变慢"),
        why=Words("groups follow importance, not rows", "分组按重要性而非行"),
        needs=Words("desc_act of the configuration, the number of ranks", "配置中的 desc_act、rank 数"),
        remedy=Words("a checkpoint without act order, or stages", "不带 act order 的检查点，或流水线"),
        check=Words("the load line and a probe prompt", "加载行与测试提示"),
        judge=act_order,
        sees=(ACT_ORDER,),
    ),
)
