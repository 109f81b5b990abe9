"""Ranks that do not hold equally much: pipeline stages of unequal weight (D20)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import SIZE, gib
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import split_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

LOADED: Final = sight("Model loading took", "model weights take", pattern=rf"(?:Model loading took|model weights take) (?P<size>{SIZE})")
_STAGE: Final = re.compile(r"PP(?P<stage>\d+)")
_UNEQUAL: Final = 1.15


def stages_of_unequal_weight(case: Case) -> Found | None:
    """Other causes of unequal memory (somebody else's processes) are judged by what is free, not by what was loaded."""
    stages: dict[str, tuple[float, Quote]] = {}
    for hit in case.log.hits(LOADED):
        found = _STAGE.search(hit.line.process)
        if found and hit.line.process not in stages:
            stages.setdefault(found["stage"], (gib(hit["size"]), hit.quote()))
    count = split_of(case).pipeline
    if len(stages) < 2 or count < 2:
        return None
    heaviest, lightest = max(stages, key=lambda stage: stages[stage][0]), min(stages, key=lambda stage: stages[stage][0])
    heavy, light = stages[heaviest][0], stages[lightest][0]
    if light <= 0 or heavy / light < _UNEQUAL:
        return None
    layers = case.context.number("model.config.num_hidden_layers")
    partition = _partition(int(layers), {int(stage): size for stage, (size, _) in stages.items()}, count) if layers else ""
    fixes = [
        Fix(
            Words(
                "give the heavy stage fewer layers (one number for each stage, their sum is the number of layers)",
                "让较重的阶段少放几层（每个阶段一个数，总和为总层数）",
            ),
            f"VLLM_PP_LAYER_PARTITION={partition}" if partition else None,
        )
    ]
    return Found(
        cause=Words(
            f"Pipeline stage {heaviest} holds {heavy:.2f} GiB of weights, stage {lightest} {light:.2f} GiB ({heavy / light:.2f} times): the stage with the embeddings or the head has the least room"
            f" for the cache, and it sets the size for all {count}.",
            f"流水线阶段 {heaviest} 的权重为 {heavy:.2f} GiB，阶段 {lightest} 为 {light:.2f} GiB（{heavy / light:.2f} 倍）：带有词嵌入或输出头的阶段留给缓存的空间最少，而它决定全部 {count} 个阶段的缓存大小。",
        ),
        evidence=[stages[heaviest][1], stages[lightest][1]],
        fixes=fixes,
        verify=Words(
            "`Model loading took` and `Available KV cache memory` of the ranks are equal within a few percent",
            "各 rank 的 `Model loading took` 与 `Available KV cache memory` 相差仅几个百分点",
        ),
        confidence=0.6 if heavy / light >= 1.3 else 0.5,
        weight="degraded",
    )


def _partition(layers: int, sizes: dict[int, float], count: int) -> str:
    """Layers per stage, moved from the heaviest to the others so that weights come out about equal."""
    if set(sizes) != set(range(count)) or layers < 2 * count:
        return ""
    base = [layers // count + (1 if index < layers % count else 0) for index in range(count)]
    weight = min(sizes[index] / base[index] for index in range(count))
    extra = [sizes[index] - weight * base[index] for index in range(count)]
    share = (sum(sizes.values())) / count
    wanted = [max(1, round((share - extra[index]) / weight)) for index in range(count)]
    lightest = min(range(count), key=lambda index: extra[index])
    wanted[lightest] += layers - sum(wanted)
    return ",".join(map(str, wanted)) if min(wanted) > 0 else ""


RULES: Final = (
    Rule(
        id="D20",
        title=Words("Pipeline stages are unequal", "流水线阶段不均衡"),
        symptoms=Words("`Model loading took` differs between stages", "各阶段的 `Model loading took` 不同"),
        why=Words("embeddings and head lie on the first and last stage", "词嵌入与输出头位于首末阶段"),
        needs=Words("weights per stage, number of layers", "各阶段权重大小与总层数"),
        remedy=Words("another partition of the layers", "调整各阶段层数"),
        check=Words("equal lines of all ranks", "各 rank 的数值一致"),
        judge=stages_of_unequal_weight,
        sees=(LOADED,),
    ),
)
