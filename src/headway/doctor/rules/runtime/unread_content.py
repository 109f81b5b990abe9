"""Input that was not read in full: a safety rule counts it as a match (R15), a task call refuses it (R25)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import deployment
from headway.doctor.rules.runtime.unknown import RULE_MATCHED, fields_of
from headway.doctor.words import Words

REFUSED: Final = sight("max_length_exceeded", "scan_budget_exceeded", pattern=r"(?P<code>max_length_exceeded|scan_budget_exceeded)", series=True)
UNSCANNED: Final = sight("unscanned", pattern=r"unscanned(?:_(?P<reason>input_limit|scan_budget))?", series=True)
_SAFETY: Final = re.compile(r"jailbreak|pii|safety|guard|hallu", re.IGNORECASE)
_MODEL_LIMIT: Final = 32768  # Vela 1.0 encoders and the like; the model's card has its own
_HALU_LIMIT: Final = 8192
_TOKENS: Final = re.compile(r"(?:has|of|at least|found) (?P<tokens>\d+) tokens")
_LIMIT: Final = re.compile(r"(?:at most|budget is|limit (?:is|of)|limit:?|max_tokens(?: is|:)?) (?P<limit>\d+)")


def _sizes(hits: Sequence[Hit]) -> tuple[int | None, int | None]:
    """(most tokens that came, limit)."""
    tokens: list[int] = []
    limits: list[int] = []
    for hit in hits:
        fields = fields_of(hit)
        tokens += _numbers(fields, "input_tokens", "tokens", "prompt_tokens")
        limits += _numbers(fields, "scan_budget", "scan_budget_tokens", "budget", "max_scan_tokens", "limit") or _numbers(fields, "max_tokens")
        if not fields.get("input_tokens"):
            tokens += [int(m["tokens"]) for m in _TOKENS.finditer(hit.line.text)]
            limits += [int(m["limit"]) for m in _LIMIT.finditer(hit.line.text)]
    return max(tokens, default=None), min(limits, default=None)


def _numbers(fields: Mapping[str, Any], *names: str) -> list[int]:
    return [int(value) for name in names if isinstance(value := fields.get(name), (int, float)) or (isinstance(value, str) and value.isdigit())]


def enough_tokens(tokens: int | None, limit: int | None, artifact: str) -> int:
    """A power of two with room above what came, not above what the model reads."""
    wanted = 1 << (int(1.5 * (tokens or 2 * (limit or 4096))) - 1).bit_length()
    most = _HALU_LIMIT if "halu" in artifact.lower() else _MODEL_LIMIT if re.search(r"Vela-1\.0|307M", artifact) else wanted
    return most if (tokens or 0) <= most < wanted else wanted


def _settings(case: Case, name: str, tokens: int | None, limit: int | None) -> tuple[int, str]:
    place = deployment(case, name)
    wanted = enough_tokens(tokens, limit, place.artifact)
    owner = name or place.name
    where = f"global.model_catalog.deployments.{owner}.input" if owner else "input"
    return wanted, f"{where}: {{max_tokens: {wanted}, overflow: window}}"


def safety_counts_the_unread(case: Case) -> Found | None:
    hits = [hit for hit in case.log.hits(RULE_MATCHED) if str(fields_of(hit).get("type", "")) == "unscanned" or "unscanned" in hit.line.text]
    if not hits:
        hits = [hit for hit in case.log.hits(UNSCANNED) if hit["reason"] or re.search(r"input_limit|scan_budget", hit.line.text)]
    if not hits:
        return None
    fields = fields_of(hits[0])
    reason = str(fields.get("reason", "")) or (m[0] if (m := re.search(r"input_limit|scan_budget", hits[0].line.text)) else "input_limit")
    rule = str(fields.get("rule", "")) or "a safety rule"
    overflow = str(fields.get("overflow", ""))
    tokens, limit = _sizes(hits)
    name = str(fields.get("deployment", ""))
    wanted, setting = _settings(case, name, tokens, limit)
    sizes = Words(f"up to {tokens} tokens came" if tokens else "the input is longer", f"输入最多 {tokens} token" if tokens else "输入更长")
    bound = Words(f", the limit is {limit}" if limit else "", f"，而上限为 {limit}" if limit else "")
    what = Words("larger scan budget", "更大的扫描预算") if reason == "scan_budget" else Words("max_tokens", "max_tokens 设为")
    policy = Words(f" with overflow: {overflow}" if overflow else "", f"，overflow 为 {overflow}" if overflow else "")
    return Found(
        cause=Words(
            f"{rule} matched {len(hits)} times as `unscanned` ({reason}): {sizes.en}{bound.en}{policy.en}. Content that was not read counts as a match by design, so that padding hides nothing;"
            " the texts are not attacks. Weakening the rule or cutting the text would leave the rest unread.",
            f"{rule} 以 `unscanned`（{reason}）匹配了 {len(hits)} 次：{sizes.zh}{bound.zh}{policy.zh}。未读完的内容按设计算作匹配，使填充文本无法绕过检查；这些文本并非攻击。"
            "削弱规则或截断文本都会留下未读部分。",
        ),
        evidence=[hit.quote() for hit in hits[:2]],
        fixes=[
            Fix(
                Words(
                    f"let the model read it all: a {what.en} of {wanted} tokens (at most the model's own) and overlapping windows",
                    f"让模型读完全文：{what.zh} {wanted} token（不超过模型自身上限），并使用重叠窗口",
                ),
                setting,
            ),
        ],
        verify=Words(
            f"the same text ({tokens or 'as long'} tokens) is scanned: the log has no `unscanned` for it, and `x-vsr-trace` shows a score",
            f"同一文本（{tokens or '同样长'} token）被完整扫描：日志中不再出现 `unscanned`，`x-vsr-trace` 给出分数",
        ),
        confidence=STATED,
        weight="degraded",
        explains=("R25",),
    )


def input_is_too_long(case: Case) -> Found | None:
    hits = case.log.hits(REFUSED)
    if not hits:
        return None
    fields = fields_of(hits[0])
    code = hits[0]["code"]
    name = str(fields.get("deployment", ""))
    overflow = str(fields.get("overflow", ""))
    tokens, limit = _sizes(hits)
    wanted, setting = _settings(case, name, tokens, limit)
    surface = str(fields.get("surface", ""))
    safety = bool(_SAFETY.search(f"{name} {deployment(case, name).artifact}"))
    sizes = Words(f"up to {tokens} tokens" if tokens else "more tokens than allowed", f"最多 {tokens} token" if tokens else "超出允许的 token 数")
    bound = Words(f"reads at most {limit}" if limit else "reads fewer", f"最多读取 {limit}" if limit else "读取得更少")
    note = (
        Words(
            "Cutting the text would leave the rest unread, which scans for personal data and attacks must not do.",
            "截断会留下未读部分，个人数据与攻击扫描不能这样做。",
        )
        if safety
        else Words("Cutting (truncate) is right only where the beginning is enough.", "只有当开头部分就足够时才适合截断（truncate）。")
    )
    what = Words("its input limit", "输入上限") if code == "max_length_exceeded" else Words("its scan budget", "扫描预算")
    return Found(
        cause=Words(
            f"{len(hits)} {surface + ' ' if surface else ''}call{'s' if len(hits) > 1 else ''} of {name or 'a deployment'} {'were' if len(hits) > 1 else 'was'} refused with `{code}`: {sizes.en} came, and it {bound.en} ({what.en}{f', overflow: {overflow}' if overflow else ''}). {note.en}",
            f"{name or '某个 deployment'} 有 {len(hits)} 次{f' {surface} ' if surface else ''}调用以 `{code}` 被拒：输入{sizes.zh}，而它{bound.zh}（{what.zh}{f'，overflow: {overflow}' if overflow else ''}）。{note.zh}",
        ),
        evidence=[hit.quote() for hit in hits[:2]],
        fixes=[
            Fix(
                Words(
                    f"raise max_tokens to {wanted} (up to the model's limit) and read in windows: overflow: window",
                    f"把 max_tokens 提高到 {wanted}（不超过模型上限），并按窗口读取：overflow: window",
                ),
                setting,
            )
        ],
        verify=Words(
            f"the same call ({tokens or 'as long'} tokens) is answered; `{code}` is gone from the log",
            f"同样的调用（{tokens or '同样长'} token）得到回答，日志不再出现 `{code}`",
        ),
        confidence=STATED,
        weight="degraded",
        explains=("N5", "N6"),
    )


RULES: Final = (
    Rule(
        id="R15",
        proof="live",
        title=Words("A safety rule matches content that was not read", "安全规则把未读完的内容算作匹配"),
        symptoms=Words(
            "matches of the type `unscanned`, reason `input_limit` or `scan_budget`", "匹配类型为 `unscanned`，原因为 `input_limit` 或 `scan_budget`"
        ),
        why=Words("content was not read completely, which counts as a match by design", "内容没有完整读取，按设计算作匹配"),
        needs=Words("tokens, input.max_tokens, overflow, scan budget", "token 数、input.max_tokens、overflow、扫描预算"),
        remedy=Words("larger max_tokens with overflow: window; a larger scan budget", "更大的 max_tokens 与 overflow: window；更大的扫描预算"),
        check=Words("the same text is scanned", "同一文本被完整扫描"),
        judge=safety_counts_the_unread,
        sees=(RULE_MATCHED, UNSCANNED, *DEPLOYMENTS),
    ),
    Rule(
        id="R25",
        title=Words("Input is longer than the deployment reads", "输入超过 deployment 的读取上限"),
        symptoms=Words("`max_length_exceeded`, `scan_budget_exceeded`", "`max_length_exceeded`、`scan_budget_exceeded`"),
        why=Words("input above input.max_tokens or the window budget", "输入超过 input.max_tokens 或窗口预算"),
        needs=Words("tokens, limit, policy", "token 数、上限、策略"),
        remedy=Words("raise max_tokens, overflow: window", "提高 max_tokens，overflow: window"),
        check=Words("the call passes", "调用通过"),
        judge=input_is_too_long,
        sees=(REFUSED, *DEPLOYMENTS),
    ),
)
