"""L16: a longer context was asked for than the model was trained for."""

from __future__ import annotations

import json
import math
import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.outcome import overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

TOO_LONG: Final = sight(
    "is greater than the derived",
    "positions that the model learned",
    pattern=r"(?:max_model_len|context_length|max_seq_len) \((?P<asked>[\d,]+)\) is greater than the (?:derived (?:max_model_len|context_length) \((?P<derived>[^)]*)\)|(?P<learned>[\d,]+) positions that the model learned)",
)
OVERFLOW: Final = sight(
    "possible training context overflow",
    pattern=r"n_ctx(?:_per_seq|_seq)? \((?P<asked>\d+)\) > n_ctx_train \((?P<limit>\d+)\)",
)
_NAMES: Final = "max_position_embeddings|original_max_position_embeddings|max_seq_len|seq_length|n_positions|model_max_length|max_sequence_length|n_ctx"


ARCHITECTURE: Final = sight("Resolved architecture", pattern=r"Resolved architecture: (?P<name>\w+)")
# a table of positions instead of a formula
_LEARNED_POSITIONS: Final = re.compile(
    r"^(?:Bert|Roberta|XLMRoberta|Camembert|MPNet|Electra|Distil|Albert|Deberta|GPT2|OPT|GPTBigCode|Clip|CLIP|Whisper)"
)


def _architecture(case: Case) -> str:
    hit = case.log.first(ARCHITECTURE)
    return hit["name"] if hit else ""


def longer_than_trained(case: Case) -> Found | None:
    """Both lengths stand in the message; their quotient, rounded up, is the factor of a rope scaling that would cover it."""
    hit, llama = case.log.first(TOO_LONG), case.log.first(OVERFLOW)
    seen = hit or llama
    if seen is None:
        return None
    asked = int(seen.number("asked"))
    limit = _limit(seen["derived"], seen["learned"]) if seen is hit else int(seen.number("limit"))
    if not limit or (hit is not None and overcome(case, hit)):
        return None
    learned = _LEARNED_POSITIONS.search(case.context.text("model.config.architectures.0") or _architecture(case))
    factor = math.ceil(2 * asked / limit) / 2
    rope = {
        "rope_parameters" if (_major(case) >= 5) else "rope_scaling": {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": limit,
        }
    }
    trap = Words(
        f" Setting VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 alone only hides the check: beyond {limit} tokens the text becomes garbage.",
        f"只设置 VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 只是隐藏检查：超过 {limit} 个 token 后输出会变成乱码。",
    )
    if llama is seen:
        trap = Words(f" Beyond {limit} tokens the text degrades.", f"超过 {limit} 个 token 后文本质量下降。")
        fixes = [
            Fix(Words("use at most the trained length", "不超过训练长度"), f"-c {limit}"),
            Fix(
                Words("or scale the positions on purpose", "或有意使用位置缩放"),
                f"--rope-scaling yarn --rope-scale {factor:g} --yarn-orig-ctx {limit} -c {asked}",
            ),
        ]
    elif case.launch.program == "sglang":
        fixes = [
            Fix(Words("ask for at most the trained length", "不超过训练长度"), f"--context-length {limit}"),
            Fix(
                Words(
                    "or scale the positions, if the model's card says that it supports it",
                    "或使用位置缩放（模型说明支持时）",
                ),
                f"--json-model-override-args '{json.dumps(rope)}' --context-length {asked}",
            ),
        ]
    else:
        fixes = [Fix(Words("ask for at most the trained length", "不超过训练长度"), f"--max-model-len {limit}")]
    if llama is not seen and case.launch.program != "sglang":
        fixes.append(
            Fix(
                Words(
                    "or another model with a longer context: its positions are a learnt table, which cannot be scaled",
                    "或改用上下文更长的模型：它的位置是学习得到的表，无法缩放",
                )
            )
            if learned
            else Fix(
                Words(
                    "or scale the positions (rope scaling), if the model's card says that it supports it",
                    "或使用 rope 位置缩放（模型说明支持时）",
                ),
                f"--hf-overrides '{json.dumps(rope)}' --max-model-len {asked}",
            )
        )
    return Found(
        cause=Words(
            f"{asked} tokens of context were asked for, and the model's configuration ends at {limit} ({asked / limit:.1f} times less).{trap.en}",
            f"请求的上下文为 {asked} 个 token，而模型配置只到 {limit}（相差 {asked / limit:.1f} 倍）。{trap.zh}",
        ),
        evidence=quoted(seen),
        fixes=fixes,
        verify=Words(
            f"the start passes `Using max model len`, and a fact placed near token {asked} of a long prompt is found again (needle test)",
            f"启动走过 `Using max model len`，且放在长提示词第 {asked} 个 token 附近的事实能被找回（大海捞针测试）",
        ),
        confidence=STATED if seen is hit else 0.75,
        weight="fatal" if seen is hit else "degraded",
    )


def _limit(derived: str, learned: str) -> int:
    """`max_position_embeddings=8192.0 or model_max_length=None in model's config.json` -> 8192; the smallest of several."""
    if learned:
        return int(learned.replace(",", ""))
    named = [int(float(found[1])) for found in re.finditer(rf"(?:{_NAMES})=(\d[\d.]*)", derived)]
    plain = re.match(r"\s*(\d[\d,]*)", derived)
    return min(named) if named else int(plain[1].replace(",", "")) if plain else 0


def _major(case: Case) -> int:
    found = re.match(r"(\d+)\.", case.context.text("versions.transformers"))
    return int(found[1]) if found else 4


RULES: Final = (
    Rule(
        id="L16",
        title=Words("Context longer than the model was trained for", "上下文超过模型训练长度"),
        symptoms=Words(
            "`User-specified max_model_len (N) is greater than the derived max_model_len`",
            "`User-specified max_model_len (N) is greater than the derived max_model_len`",
        ),
        why=Words("the configuration of the model ends earlier", "模型配置的长度更短"),
        needs=Words(
            "both lengths, and whether the model supports rope scaling", "两个长度，以及模型是否支持 rope 缩放"
        ),
        remedy=Words(
            "at most the derived length, or proper rope scaling by --hf-overrides",
            "不超过推导长度，或用 --hf-overrides 正确设置 rope 缩放",
        ),
        check=Words("a needle test at that length", "在该长度做大海捞针测试"),
        judge=longer_than_trained,
        sees=(TOO_LONG, OVERFLOW, ARCHITECTURE),
    ),
)
