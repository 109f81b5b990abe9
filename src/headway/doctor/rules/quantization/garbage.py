"""The answers are garbage: NaN in the logits, one token again and again (Q6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.metrics import quote_metrics, scrapes_of
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NOT_A_NUMBER: Final = sight(
    "NaN", "nan or inf", "contains either `inf`, `nan`", "nans_in_logits", "isnan", "nan in logits", "nan detected",
    pattern=r"NaNs? (?:or|and|/) ?[Ii]nfs?\b.*logits|(?:NaN|nan|[Ii]nf)s? (?:values? )?(?:were )?(?:found |detected )?in (?:the )?(?:logits|hidden|output|activations)|contains either `inf`, `nan`"
    r"|(?:[Ll]ogits|outputs?|hidden states) (?:contains?|are|is|have|has) (?:NaN|nan|inf)|(?:Detected|Found) (?:NaN|nan|errors!? NaN)|num_nans_in_logits\D{0,40}[1-9]|[Ll]ogits: .*\bnan\b|(?:NaN|nan) detected",
)  # fmt: skip
ONE_TOKEN: Final = sight("output_token_ids", "token_ids", pattern=r"token_ids['\"]?[:=] ?\[(?P<token>\d+)(?:, ?(?P=token)){7,}")
ANSWER: Final = sight("Generated response", "output_token_ids")
ONE_SIGN: Final = sight("!!!!!!!!", "<pad><pad>", "<unk><unk>", "<pad> <pad>", pattern=r"!{8,}|(?:<pad> ?){4,}|(?:<unk> ?){4,}")
CAST: Final = sight(
    "Casting torch.bfloat16 to torch.float16",
    "Casting torch.float32 to torch.float16",
    pattern=r"Casting torch\.(?P<from>bfloat16|float32) to torch\.float16",
)
_SIGNS: Final = re.compile(r"!{8,}|(?:<pad> ?){4,}|(?:<unk> ?){4,}|\[(\d+)(?:, ?\1){7,}")
_CORRUPTED: Final = "corrupted_requests"
_BF16_FROM: Final = 80


@dataclass(frozen=True, slots=True)
class Signs:
    """`numeric`: the log names NaN or inf, or the engine counted them. `token`: the one that repeats, "" when not seen.
    `corrupted`: requests with NaN in their logits, as counted by the engine."""

    numeric: bool
    repeated: Hit | None
    token: str
    quotes: tuple[Quote, ...]
    corrupted: int = 0


def signs_of(case: Case) -> Signs | None:
    numeric, repeated = case.log.first(NOT_A_NUMBER), case.log.first(ONE_TOKEN, ONE_SIGN)
    quotes = [hit.quote() for hit in (numeric, repeated) if hit is not None]
    corrupted = 0
    token = "0 (`!`)" if repeated is not None and "!!!" in repeated.line.text else ""
    for hit in case.log.hits(ONE_TOKEN):
        token = hit["token"]
    if repeated is not None and numeric is None and 2 * case.log.count(ONE_TOKEN, ONE_SIGN) < case.log.count(ANSWER):
        repeated, quotes, token = None, [], ""  # most answers are fine: somebody asked for that one
    for index, row in enumerate(case.context.items("requests")):
        text = (
            " ".join(str(row.get(key, "")) for key in ("output", "answer", "text", "completion", "output_token_ids")) if isinstance(row, dict) else ""
        )
        if found := _SIGNS.search(text):
            quotes.append(case.context.quote(f"requests.{index}", f"{found[0][:40]}"))
            token = token or (found[1] or "")
    for scrape in scrapes_of(case.context)[-1:]:
        if counted := scrape.total(_CORRUPTED):
            corrupted = int(counted)
            quotes.insert(0 if numeric is None else 1, quote_metrics(case.context, scrape, _CORRUPTED))
    return Signs(numeric is not None or corrupted > 0, repeated, token, tuple(quotes), corrupted) if quotes else None


def one_token_only(case: Case) -> Found | None:
    """A bf16 model computed in fp16 overflows at 65504; the argmax of NaN is token 0."""
    signs = signs_of(case)
    if signs is None:
        return None
    dtype, cast = case.launch.fact("dtype"), case.log.first(CAST)
    in_half = cast is not None or (dtype is not None and dtype.value.removeprefix("torch.") in ("float16", "half"))
    stored = cast["from"] if cast is not None else case.model.stored_dtype
    overflow = in_half and stored in ("bfloat16", "float32")
    what, what_zh = _what(signs)
    if overflow:
        why = f" The checkpoint is {stored} and it is computed in float16, whose largest number is 65504: activations overflow to inf, then NaN, and the first token of the vocabulary wins."
        why_zh = f"检查点是 {stored}，却用 float16 计算，其最大值为 65504：激活溢出成 inf 再变 NaN，于是词表的第一个 token 胜出。"
    elif in_half:
        why = " It is computed in float16, whose largest number is 65504: overflow is the likely reason if the model was trained in bfloat16."
        why_zh = "计算用 float16，其最大值为 65504：若模型以 bfloat16 训练，溢出是最可能的原因。"
    else:
        why = f" The dtype {dtype.value if dtype else 'in use'} does not overflow like float16, so the numbers of the checkpoint are read wrongly: zero-point convention, scales, or a damaged conversion."
        why_zh = f"dtype {dtype.value if dtype else ''} 不会像 float16 那样溢出，因此是检查点的数值读错：零点约定、scale，或转换损坏。"
    return Found(
        cause=Words(
            f"{what}{why} Sampling settings cannot help: the distribution itself is broken.", f"{what_zh}{why_zh}采样参数无济于事：分布本身已坏。"
        ),
        evidence=(*signs.quotes, *_dtype_quotes(case, dtype, cast)),
        fixes=_remedies(case, in_half),
        verify=Words(
            "repeat the probe prompt: finite logits (no NaN or inf in the log), more than one distinct token in the answer",
            "重复测试提示：logits 有限（日志中没有 NaN 或 inf），回答包含不止一种 token",
        ),
        confidence=STATED if signs.numeric else 0.85 if overflow or complains_of(case.context, "answer quality") else 0.75,
        weight="fatal" if signs.numeric else "degraded",
    )


def _what(signs: Signs) -> tuple[str, str]:
    if signs.numeric:
        counted = f" of {signs.corrupted} requests" if signs.corrupted else ""
        counted_zh = f"{signs.corrupted} 个请求的 " if signs.corrupted else ""
        extra = f" and every answer is token {signs.token} again and again" if signs.token else ""
        extra_zh = f"，回答只有 token {signs.token} 不断重复" if signs.token else ""
        return f"The logits{counted} hold NaN or inf{extra}.", f"{counted_zh}logits 中出现 NaN 或 inf{extra_zh}。"
    name = f"token {signs.token}" if signs.token else "one token"
    return (
        f"The answers consist of {name} again and again, the mark of NaN or inf in the logits.",
        f"回答只有 {name if signs.token else '同一个 token'} 不断重复，这是 logits 含 NaN 或 inf 的标志。",
    )


def _dtype_quotes(case: Case, dtype: Fact[str] | None, cast: Hit | None) -> list[Quote]:
    quotes = [cast.quote()] if cast is not None else [dtype.quote] if dtype is not None else []
    for key in ("torch_dtype", "dtype"):
        if case.context.has(f"model.config.{key}"):
            quotes.append(case.context.quote(f"model.config.{key}", f"{key}: {case.context.text(f'model.config.{key}')}"))
    return quotes


def _remedies(case: Case, in_half: bool) -> list[Fix]:
    fixes = []
    gpu = case.device.gpu(0)
    old = gpu is not None and gpu.capability is not None and gpu.capability < _BF16_FROM
    if in_half and not old:
        fixes.append(Fix(Words("compute in bfloat16, which has the range of float32", "用 bfloat16 计算，其范围与 float32 相同"), "--dtype bfloat16"))
    if in_half or not case.model.claimed:
        fixes.append(
            Fix(
                Words(
                    "or in float32 (twice the memory)" if fixes else f"compute in float32 ({'this card has no bfloat16; ' if old else ''}twice the memory)",
                    "或用 float32（内存翻倍）" if fixes else f"用 float32 计算（{'这张卡没有 bfloat16；' if old else ''}内存翻倍）",
                ),
                "--dtype float32",
            )
        )
    if case.model.claimed or case.model.named or not in_half:
        fixes.append(
            Fix(
                Words(
                    "if it stays, take another checkpoint of this model: compare its perplexity with the unquantised dtype (GPTQ files of format v1 and v2 differ in the stored zero point)",
                    "若仍如此，换该模型的另一个检查点：与未量化 dtype 的困惑度比较（GPTQ v1 与 v2 格式存储的零点不同）",
                )
            )
        )
    return fixes


RULES: Final = (
    Rule(
        id="Q6",
        title=Words("Garbage answers: NaN or inf in the logits", "回答是乱码：logits 含 NaN 或 inf"),
        symptoms=Words("`!!!!`, `<pad>`, one token only; NaN or inf in the logits", "`!!!!`、`<pad>`、只有一个 token；logits 含 NaN 或 inf"),
        why=Words(
            "overflow of a bf16 model in fp16 (token 0 wins), a wrong zero-point convention, a head of another size, the template",
            "bf16 模型在 fp16 下溢出（token 0 胜出）、零点约定错误、输出头大小不符、模板",
        ),
        needs=Words(
            "NaN in the logits, dtype cast lines, runs of token 0, perplexity against a reference",
            "logits 中的 NaN、dtype 转换行、连续的 token 0、与参考的困惑度对比",
        ),
        remedy=Words("bfloat16 or float32, a correct checkpoint; no sampling setting helps", "bfloat16 或 float32、正确的检查点；采样参数无用"),
        check=Words("logits finite, a probe prompt", "logits 有限、测试提示正常"),
        judge=one_token_only,
        sees=(NOT_A_NUMBER, ANSWER, ONE_TOKEN, ONE_SIGN, CAST),
        explains=("Q13",),
    ),
)
