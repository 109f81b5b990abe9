"""N5 and N6: requests that the server refuses for their length or their content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Weight
from headway.doctor.rules.network.server_address import served_at
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_N: Final = r"[\d,]+"
TOO_LONG: Final = sight(
    "maximum context length",
    "context length is only",
    "longer than the maximum model length",
    "too long to fit into the model",
    "is too long and exceeds limit",
    "longer than the model's context length",
    "exceeds the available context size",
    "context_length_exceeded",
    "exceeds the maximum allowed length",
    "max_tokens must be at least 1, got -",
    pattern=rf"(?:maximum context length (?:is|of) (?P<a>{_N})|context length is only (?P<b>{_N})|maximum model length of (?P<c>{_N})|\(context length (?P<d>{_N})\)|exceeds limit of (?P<e>{_N})"
    rf"|model's context length \((?P<f>{_N})|exceeds the available context size(?: \((?P<g>{_N}))?|maximum allowed length \((?P<h>{_N})|must be at least 1, got -(?P<missing>{_N}))",
)
_PROMPT: Final = re.compile(
    rf"(?:your (?:request|prompt) (?:has|contains) (?:at least )?(?P<a>{_N})(?: input)? tokens|\((?P<b>{_N}) in the (?:messages|prompt)|You passed (?P<c>{_N}) input tokens|(?P<d>{_N}) tokens from the input|total length (?P<e>{_N})|prompt \((?:length )?(?P<f>{_N})"
    rf"|(?:[Ii]nput|request|[Ii]nput length) \((?P<g>{_N}) tokens\)|resulted in (?P<h>{_N}) tokens|requested (?P<i>{_N}) tokens in the input)"
)
_ANSWER: Final = re.compile(
    rf"(?:(?P<a>{_N}) in the completion|is too large: (?P<b>{_N})|requested (?P<c>{_N}) output tokens|(?P<d>{_N}) tokens for the completion|max_tokens[=: ]+(?P<e>{_N}))"
)
_WHOLE: Final = re.compile(rf"you requested (?:a total of )?(?P<a>{_N}) tokens")


def context_exceeded(case: Case) -> Found | None:
    """Prompt + max_tokens against the limit, from the numbers of the message. What is left for the answer is the fix."""
    hits = [
        hit
        for hit in case.log.hits(TOO_LONG)
        if not re.search(r"max_model_len|derived", hit.line.text[: hit.match.start()])
    ]
    hit = next((hit for hit in hits if _limit(hit)), None)
    if hit is None:
        return _negative(case, hits)
    text = hit.line.text
    limit = _limit(hit)
    prompt, answer, whole = _first(_PROMPT, text), _first(_ANSWER, text), _first(_WHOLE, text)
    if prompt is None and whole is not None and answer is not None:
        prompt = whole - answer
    count = len({found.line.number for found in hits})
    left = limit - prompt if prompt is not None else None
    over = prompt is not None and prompt >= limit
    sum_en = (
        f"{prompt} prompt tokens" + (f" + {answer} for the answer = {prompt + answer}" if answer else "")
        if prompt is not None
        else f"{whole} tokens were asked for"
        if whole
        else "the request"
    )
    sum_zh = (
        f"提示 {prompt} 个 token" + (f" + 回答 {answer} = {prompt + answer}" if answer else "")
        if prompt is not None
        else f"请求 {whole} 个 token"
        if whole
        else "该请求"
    )
    longer = prompt + (answer or 256) if prompt is not None else whole
    flag = {"llama.cpp": "-c", "sglang": "--context-length"}.get(case.launch.program, "--max-model-len")
    raised = -(-longer // 1024) * 1024 if longer else None
    fixes: list[Fix] = []
    if left is not None and left > 0:
        fixes.append(
            Fix(
                Words(f"ask for at most {left} tokens of answer", f"回答最多请求 {left} 个 token"),
                f'"max_tokens": {left}',
            )
        )
    fixes.append(
        Fix(
            Words(
                f"shorten the prompt from {prompt} to less than {limit}, by at least {prompt - limit + 1} tokens (drop old turns of the conversation, send fewer documents)"
                if over and prompt is not None
                else f"{'or ' if fixes else ''}shorten the prompt (drop old turns of the conversation)",
                f"把提示从 {prompt} 个 token 缩短到 {limit} 以下，至少缩短 {prompt - limit + 1} 个 token（删除旧对话轮次、减少文档）"
                if over and prompt is not None
                else f"{'或' if fixes else ''}缩短提示（删除旧的对话轮次）",
            ),
            '"truncate_prompt_tokens": ' + str(limit - (answer if answer and answer < limit else 256))
            if over and flag == "--max-model-len"
            else None,
        )
    )
    trained = case.context.number("model.config.max_position_embeddings")
    if raised and (trained is None or trained >= raised):
        fixes.append(
            Fix(
                Words(
                    "or start the server with a longer context, if the model allows it and the KV cache holds it",
                    "若模型允许且 KV 缓存放得下，用更长的上下文启动服务器",
                ),
                f"{flag} {raised}",
            )
        )
    elif raised is None:
        fixes.append(
            Fix(
                Words(
                    f"or start the server with a longer context ({flag} above {limit}), if the model allows it and the KV cache holds it",
                    f"或在模型允许且 KV 缓存放得下时，用更长的上下文（{flag} 大于 {limit}）启动服务器",
                )
            )
        )
    return Found(
        cause=Words(
            f"The request does not fit the context: {sum_en}, and the limit is {limit} tokens ({count} such {'refusals' if count > 1 else 'refusal'}). The server is healthy.",
            f"请求超出上下文：{sum_zh}，而上限是 {limit} 个 token（共拒绝 {count} 次）。服务器本身正常。",
        ),
        evidence=quoted(hit),
        fixes=fixes,
        verify=Words(
            f"the same request with prompt + max_tokens <= {limit} answers 200",
            f"同一请求在 prompt + max_tokens <= {limit} 时返回 200",
        ),
        confidence=STATED if prompt is not None or whole is not None else 0.85,
        weight=_weight(hit, count),
        explains=("N6",),
    )


def _weight(hit: Hit, count: int) -> Weight:
    """One refusal in a server's log is some user's mistake; a client's own error, or several, is what the case is about."""
    return "fatal" if count > 1 or "Error code" in hit.line.text else "degraded"


def _negative(case: Case, hits: list[Hit]) -> Found | None:
    """An old server subtracts the prompt from the context and finds less than nothing."""
    hit = next((hit for hit in hits if hit["missing"]), None)
    if hit is None:
        return None
    over = int(hit.number("missing"))
    limit = case.launch.number("max_model_len")
    known = Words(f" ({limit:.0f} tokens)" if limit else "", f"（{limit:.0f} 个 token）" if limit else "")
    return Found(
        cause=Words(
            f"The prompt is {over} tokens longer than the context of the server{known.en}, so that less than nothing was left for the answer.",
            f"提示比服务器上下文{known.zh}长 {over} 个 token，回答的余量为负。",
        ),
        evidence=quoted(hit),
        fixes=[
            Fix(Words(f"shorten the prompt by at least {over + 1} tokens", f"把提示缩短至少 {over + 1} 个 token")),
            Fix(
                Words(
                    "or start the server with a longer context, if the model allows it",
                    "或在模型允许时用更长的上下文启动服务器",
                ),
                f"--max-model-len {-(-(int(limit) + over + 256) // 1024) * 1024}" if limit else None,
            ),
        ],
        verify=Words("the shortened request answers 200", "缩短后的请求返回 200"),
        confidence=0.92,
    )


def _limit(hit: Hit) -> int:
    return next(
        (int(value.replace(",", "")) for name, value in hit.match.groupdict().items() if value and name != "missing"), 0
    )


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    value = next((group for group in found.groups() if group), None) if found else None
    return int(value.replace(",", "")) if value else None


INVALID: Final = sight(
    "Unsupported Media Type",
    "415 Unsupported",
    "422 Unprocessable",
    "Error code: 422",
    "Only 'application/json' is allowed",
    "Input should be",
    "Field required",
    "Extra inputs are not permitted",
    "JSON decode error",
    "unable to parse string as",
    "[invalid_json]",
    "[media_type_unsupported]",
    "[body_invalid]",
    "BadRequestError",
    "must be a JSON",
    "tool choice requires",
    "The model does not support",
    pattern=r"(?:Unsupported Media Type|Only 'application/json')|\(?'loc': \(?['\"]body['\"], ?['\"]?(?P<field>\w+)|(?P<should>Input should be [^'\"\\,]+)|Field required|Extra inputs are not permitted|JSON decode error|unable to parse string as"
    r"|422 Unprocessable|Error code: 422|\[(?P<reason>invalid_json|media_type_unsupported|body_invalid)\]|BadRequestError: Error code: 400 - (?P<said>.*)|must be a JSON|tool choice requires|The model does not support \w+(?: \w+)? API",
)
BAD_REQUEST: Final = sight(
    'HTTP/1.1" 400',
    'HTTP/1.1" 415',
    'HTTP/1.1" 422',
    pattern=r"\"(?:POST|GET) (?P<path>/\S+) HTTP/1\.1\" (?P<status>400|415|422)",
)
_STARTUP: Final = re.compile(
    r"validation errors? for (?:ModelConfig|VllmConfig|EngineArgs|ParallelConfig|SchedulerConfig|CacheConfig|SpeculativeConfig|LoRAConfig|LoadConfig|DeviceConfig|\w*Config\b)"
)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refusal that names a missing option of the server."""

    pattern: str
    cause: Words
    fix: Fix


_REFUSALS: Final = (
    _Refusal(
        r"tool choice requires|enable-auto-tool-choice",
        Words(
            "The request brings tools with automatic choice, and the server was started without a parser for tool calls.",
            "请求带有工具并要求自动选择，而服务器启动时没有启用工具调用解析器。",
        ),
        Fix(
            Words(
                "start the server with tool calls and the parser of the model's family",
                "启动服务器时启用工具调用及该模型系列的解析器",
            ),
            "--enable-auto-tool-choice --tool-call-parser hermes",
        ),
    ),
    _Refusal(
        r"does not support (?:Embeddings|Completions|Chat Completions|Pooling|Score|Rerank|Transcriptions?) API",
        Words(
            "The model was started for another task than the endpoint that is called.",
            "模型启动时的任务与所调用的端点不一致。",
        ),
        Fix(
            Words(
                "serve a model of that task: pooling for embeddings, generate for chat",
                "启动对应任务的模型：向量用 pooling，对话用 generate",
            ),
            "--runner pooling",
        ),
    ),
)


def content_is_invalid(case: Case) -> Found | None:
    """A field of the wrong type, a missing field, or no JSON. What stopped the start of a server is no request."""
    hits = [hit for hit in case.log.hits(INVALID) if not _STARTUP.search(hit.line.text) and not _is_another(hit)]
    # the line that names the field says more than the access log's
    hit = next((hit for hit in hits if hit["field"] or re.search(r"[\"']loc[\"']", hit.line.text)), next(iter(hits), None))
    if hit is None:
        return None
    refused = case.log.count(BAD_REQUEST)
    if not refused and not re.search(
        r"Error code: 4|BadRequest|Unsupported Media|\[\w+\]|'body'|HTTP|tool choice|does not support", hit.line.text
    ):
        return None
    text = hit.line.text
    media = re.search(r"Media Type|application/json|media_type", text)
    field = (
        hit["field"]
        or (found[1] if (found := re.search(r"[\"']loc[\"']: ?[(\[]+[\"']body[\"'], ?[\"'](\w+)[\"']", text)) else "")
        or (found[1] if (found := re.search(r"(?m)^\s*(\w+)\s+Input should", text)) else "")
    )
    should = hit["should"] or (
        found[1]
        if (found := re.search(r"(Input should be [^'\"\\,\[\]]+|Field required|Extra inputs are not permitted)", text))
        else ""
    )
    as_text = "unable to parse string" in text or "valid integer" in should or "valid number" in should
    base = served_at(case)
    known = next((row for row in _REFUSALS if re.search(row.pattern, text)), None)
    if known is not None:
        cause, fixes = known.cause, [known.fix]
    elif media:
        cause = Words(
            "The request was sent without `Content-Type: application/json`, so its body was not read as JSON.",
            "请求没有带 `Content-Type: application/json`，正文未被当作 JSON 读取。",
        )
        fixes = [
            Fix(
                Words("send the body as JSON with this header", "以 JSON 发送正文并带上该请求头"),
                f"curl -s {base}/v1/chat/completions -H 'Content-Type: application/json' -d @request.json",
            )
        ]
    elif re.search(r"JSON decode|invalid_json|must be a JSON|Expecting", text):
        cause = Words(
            "The body of the request is no valid JSON (a quote, a comma or an encoding is wrong, often through the shell's quoting).",
            "请求正文不是合法 JSON（引号、逗号或编码有误，常见于 shell 引号问题）。",
        )
        fixes = [
            Fix(
                Words("write the body to a file, check it and send that", "把正文写入文件，检查后再发送"),
                f"python -m json.tool request.json && curl -s {base}/v1/chat/completions -H 'Content-Type: application/json' -d @request.json",
            )
        ]
    else:
        named = Words(
            f"The field {field}" if field else "A field of the request",
            f"字段 {field}" if field else "请求中的某个字段",
        )
        says = should.strip().rstrip(".") or "validation failed"
        cause = Words(
            f"{named.en} is invalid ({says}): "
            + (
                "a number was sent as a string."
                if as_text
                else "the server refuses the request before the model sees it."
            ),
            f"{named.zh} 无效（{says}）："
            + ("把数字以字符串形式发送了。" if as_text else "服务器在模型处理之前就拒绝了该请求。"),
        )
        example = f'"{field}": 256' if as_text and field else None
        fixes = [
            Fix(
                Words(
                    f"send {field or 'the field'} with the type that the message asks for"
                    + (", a number without quotes" if as_text else ""),
                    f"按提示的类型发送 {field or '该字段'}" + ("，数字不加引号" if as_text else ""),
                ),
                example
                if example and "token" in field
                else f"curl -s {base}/openapi.json | python -m json.tool | grep -n -A8 '\"{field}\"'"
                if field
                else None,
            )
        ]
    refusals = Words(
        f" {refused} requests were refused." if refused else "", f"共拒绝 {refused} 个请求。" if refused else ""
    )
    return Found(
        cause=Words(cause.en + refusals.en, cause.zh + refusals.zh),
        evidence=quoted(hit, case.log.first(BAD_REQUEST)),
        fixes=fixes,
        verify=Words("the corrected request answers 200 in one curl", "更正后的请求用一次 curl 返回 200"),
        confidence=0.92 if known or media or field or should else 0.8,
        weight=_weight(hit, refused),
    )


def _is_another(hit: Hit) -> bool:
    """A 400 that has a rule of its own."""
    return bool(
        re.search(
            r"context length|maximum model length|context size|chat template|does not exist|too large: \d|logprobs|grammar|guided",
            hit.line.text,
        )
    )


RULES: Final = (
    Rule(
        id="N5",
        title=Words("The request does not fit the context", "请求超出上下文长度"),
        symptoms=Words("400, `maximum context length`", "400，`maximum context length`"),
        why=Words("prompt and max_tokens together exceed max model len", "提示与 max_tokens 之和超过 max model len"),
        needs=Words("prompt tokens, max_tokens, the limit", "提示 token 数、max_tokens、上限"),
        remedy=Words(
            "smaller max_tokens, a shorter prompt, or a longer context", "减小 max_tokens、缩短提示，或加长上下文"
        ),
        check=Words("one curl", "一次 curl"),
        judge=context_exceeded,
        sees=(TOO_LONG,),
    ),
    Rule(
        id="N6",
        title=Words("The request is invalid", "请求无效"),
        symptoms=Words("400, 415 or 422 with a validation message", "400、415 或 422，带校验信息"),
        why=Words(
            "the content type is missing, or strings were sent for numbers", "缺少内容类型，或把数字发成了字符串"
        ),
        needs=Words("the field and the message", "字段与信息"),
        remedy=Words("the type that the message asks for", "按提示的类型发送"),
        check=Words("one curl", "一次 curl"),
        judge=content_is_invalid,
        sees=(INVALID, BAD_REQUEST),
    ),
)
