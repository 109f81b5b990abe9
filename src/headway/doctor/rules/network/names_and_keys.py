"""N2, N3 and N4: requests for another name, to another path, or without the key."""

from __future__ import annotations

import ast
import re
from collections import Counter
from difflib import get_close_matches
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.network.server_address import served_at
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_MODEL: Final = sight(
    "does not exist",
    "not found, try pulling it",
    "model_not_found",
    pattern=r"[Mm]odel [`'\"\\]+(?P<name>[^`'\"\\]+)[`'\"\\]+ (?:does not exist|not found)(?: here\. Served: (?P<served>[^\[\\]+?)(?:\.?$|\.? ?\[| Give|\\|'|\"))?",
)
ADAPTERS: Final = sight("Loaded new LoRA adapter", pattern=r"Loaded new LoRA adapter: name '(?P<name>[^']+)'")


def name_is_not_served(case: Case) -> Found | None:
    hits = [
        hit for hit in case.log.hits(NO_MODEL) if not re.search(r"https?://\S*/(?:resolve|api/models)", hit.line.text)
    ]
    if not hits or case.launch.program in ("vllm-sr", "vllm-srun"):
        return None
    hit = hits[-1]
    name = hit["name"]
    served = _served(case, hit)
    near = next(iter(get_close_matches(name.lower(), [other.lower() for other in served], 1, 0.5)), "")
    right = next((other for other in served if other.lower() == near), served[0] if served else "")
    only_case = right.lower() == name.lower() and right != name
    model = case.launch.model
    count = len({found.line.number for found in hits})
    knows = (
        Words(
            f"the server serves {', '.join(served)}" + (" (only upper and lower case differ)" if only_case else ""),
            f"服务器提供的是 {'、'.join(served)}" + ("（只有大小写不同）" if only_case else ""),
        )
        if served
        else Words("the server serves another name", "服务器提供的是另一个名字")
    )
    alias = "served_model_name" in case.launch.flags
    why = Words(
        " `--served-model-name` replaced the model's own name."
        if alias and name in (model, model.rsplit("/", 1)[-1])
        else "",
        "`--served-model-name` 取代了模型原来的名字。" if alias and name in (model, model.rsplit("/", 1)[-1]) else "",
    )
    fixes = (
        [Fix(Words("use the served model name in the request", "在请求中使用已提供的模型名"), f'"model": "{right}"')]
        if right
        else []
    )
    fixes.append(
        Fix(
            Words("or let the server answer to both names", "或让服务器同时接受两个名字")
            if fixes
            else Words("let the server answer to this name too", "让服务器也接受这个名字"),
            f"--served-model-name {' '.join([*served, name])}",
        )
    )
    evidence = quoted(hit)
    if (given := case.launch.flags.get("served_model_name")) is not None:
        evidence.append(given.quote)
    return Found(
        cause=Words(
            f"Requests ask for the model {name}, which is not a served name: {knows.en} ({count} refused).{why.en}",
            f"请求的模型名是 {name}，但它不是已提供的名字：{knows.zh}（已拒绝 {count} 次）。{why.zh}",
        ),
        evidence=evidence,
        fixes=fixes,
        verify=Words(
            f"`curl -s {served_at(case)}/v1/models` lists {right or 'the name to use'}, and one request with it answers 200",
            f"`curl -s {served_at(case)}/v1/models` 列出 {right or '应使用的名字'}，用它发一次请求返回 200",
        ),
        confidence=STATED if served else 0.88,
        explains=("N3",),
    )


def _served(case: Case, hit: Hit) -> list[str]:
    if hit["served"]:
        return [name.strip() for name in hit["served"].split(",") if name.strip()]
    value = (
        case.launch.flags["served_model_name"].value
        if "served_model_name" in case.launch.flags
        else case.launch.config["served_model_name"].value
        if "served_model_name" in case.launch.config
        else ""
    )
    names: list[str] = []
    if value.startswith("["):
        try:
            names = [str(name) for name in ast.literal_eval(value)]
        except (ValueError, SyntaxError):
            names = re.findall(r"['\"]([^'\"]+)['\"]", value)
    elif value:
        names = value.split()
    names = names or ([case.launch.model] if case.launch.model else [])
    adapters = re.findall(r"name='([^']+)'|(?:^|[\s'\[])([\w.\-]+)=/", case.launch.value("lora_modules"))
    return names + [one or other for one, other in adapters] + [found["name"] for found in case.log.hits(ADAPTERS)]


CALL: Final = sight(
    " 404",
    " 405",
    "There is no route",
    "{'detail': 'Not Found'}",
    pattern=r"(?P<method>GET|POST|OPTIONS|PUT) (?:https?://[^/\s\"]+)?(?P<path>/\S*?)(?: HTTP/[\d.]+)?[\"']? (?:[\d.]+ )?(?P<status>404|405)\b|There is no route (?P<verb>\w+) (?P<where>/\S*)|(?P<client>\{'detail': 'Not Found'\})",
)
_ENDPOINT: Final = re.compile(
    r"(?:chat/completions|completions|models|embeddings|responses|messages|rerank|score|pooling|tokenize|detokenize|audio/\w+|classify)/?(?:\?.*)?$"
)
_FOREIGN: Final[dict[str, str]] = {
    "/api/chat": "/v1/chat/completions",
    "/api/generate": "/v1/completions",
    "/api/tags": "/v1/models",
    "/generate": "/v1/completions",
    "/api/embeddings": "/v1/embeddings",
    "/api/embed": "/v1/embeddings",
    "/completion": "/v1/completions",
}
_PROBES: Final = re.compile(r"favicon|robots|\.php|\.env|wp-|^/$|^/docs|^/metrics|^/health")


def path_is_wrong(case: Case) -> Found | None:
    """Only paths that end in a known endpoint and have the wrong part before it; scanners and favicons are no fault."""
    wrong: Counter[str] = Counter()
    where: dict[str, Hit] = {}
    for hit in case.log.hits(CALL):
        path = hit["path"] or hit["where"]
        if path and _right(path) != path and _right(path):
            wrong[path] += 1
            where.setdefault(path, hit)
    if not wrong:
        return None
    path, _ = wrong.most_common(1)[0]
    hit = where[path]
    right = _right(path)
    base = served_at(case)
    times = sum(wrong.values())
    foreign = path in _FOREIGN
    if foreign:
        why = Words(
            f"The client speaks another protocol: it calls {path}, the OpenAI-compatible path is {right}",
            f"客户端使用了另一种协议：它调用 {path}，而 OpenAI 兼容路径是 {right}",
        )
    elif re.match(r"^/+v1/+v1/", path):
        why = Words(
            f"/v1 is doubled in the path ({path}): the base URL ends with /v1 and the client appends it again",
            f"路径中 /v1 重复（{path}）：base URL 以 /v1 结尾，客户端又添加了一次",
        )
    elif "//" in path:
        why = Words(
            f"The path has a double slash ({path}): the base URL ends with a slash and the client appends another one",
            f"路径中有双斜杠（{path}）：base URL 以斜杠结尾，客户端又加了一个",
        )
    elif "/v1" not in path:
        why = Words(
            f"/v1 is missing in the path ({path}): the base URL of the client ends before it",
            f"路径缺少 /v1（{path}）：客户端的 base URL 在它之前就结束了",
        )
    else:
        why = Words(
            f"The path {path} has a part before or after {right} that the server does not have",
            f"路径 {path} 中 {right} 的前后多出了服务器没有的部分",
        )
    client = case.log.first(CALL) if case.log.first(CALL) is not hit else None
    return Found(
        cause=Words(
            f"{why.en}; {times} calls got 404. The model's name is not the problem: this answer is `Not Found` for the path.",
            f"{why.zh}；{times} 次调用返回 404。模型名没有问题：这是对路径的 `Not Found`。",
        ),
        evidence=quoted(hit, next((found for found in case.log.hits(CALL) if found["client"]), client)),
        fixes=[
            Fix(
                Words(
                    "set the client's base_url to exactly this; the client appends the endpoint",
                    "把客户端的 base_url 设为以下值；端点由客户端自动追加",
                ),
                f"base_url={base}/v1" if not foreign else f"curl -s {base}{right}",
            )
        ],
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' {base}/v1/models` prints 200, and the server's log shows {right}",
            f"`curl -s -o /dev/null -w '%{{http_code}}' {base}/v1/models` 输出 200，且服务器日志显示 {right}",
        ),
        confidence=STATED,
    )


def _right(path: str) -> str:
    """The path as it should be, the path itself when it is right, "" when it is none of ours."""
    bare = path.split("?")[0]
    if bare in _FOREIGN:
        return _FOREIGN[bare]
    found = _ENDPOINT.search(bare)
    if found is None or _PROBES.search(bare):
        return ""
    # versions of the API other than /v1 exist for some endpoints
    if (
        re.fullmatch(r"/v[12]/(?:models/[\w.\-/]+|[\w/]+)", bare)
        and not re.match(r"/v1/v1", bare)
        and not bare.endswith("/")
    ):
        return path
    if re.fullmatch(r"/(?:tokenize|detokenize|pooling|score|rerank|classify)", bare):
        return path
    return "/v1/" + found[0].rstrip("/")


UNAUTHORIZED: Final = sight(
    "401 Unauthorized",
    "Error code: 401",
    "AuthenticationError",
    " 401",
    "valid API key is needed",
    "Invalid API Key",
    "Incorrect API key",
    "[unauthorized]",
    pattern=r"(?:(?P<caller>[\d.a-f:\[\]]+):\d+ - )?\"?(?:GET|POST) (?P<path>/\S+)(?: HTTP/[\d.]+)?\"? (?:[\d.]+ )?401\b|Error code: 401|AuthenticationError|401 Unauthorized|valid API key is needed|I(?:nvalid|ncorrect) API [Kk]ey",
)


SERVED: Final = sight('HTTP/1.1" 200')


def key_is_missing(case: Case) -> Found | None:
    """Which callers are refused."""
    hits = [
        hit
        for hit in case.log.hits(UNAUTHORIZED)
        if not re.search(
            r"Client Error|/resolve/|api/models|huggingface|GatedRepo|RepositoryNotFound|hub", hit.line.text
        )
    ]
    if not hits or case.launch.program == "vllm-sr":
        return None
    callers = Counter(hit["caller"] for hit in hits if hit["caller"])
    refused = [caller for caller, _ in callers.most_common()]
    who = Words(
        f" from {', '.join(refused[:3])}" if refused else "", f"（来自 {'、'.join(refused[:3])}）" if refused else ""
    )
    single = all(hit["caller"] for hit in hits) and len(hits) <= 2 and case.log.count(SERVED) >= 10
    told = any(re.search(r"(?i)incorrect|invalid", hit.line.text) for hit in hits)
    how = Words("a wrong key" if told else "no key, or a wrong one", "错误的密钥" if told else "没有密钥或密钥错误")
    base = served_at(case)
    return Found(
        cause=Words(
            f"{len(hits)} request{'s' if len(hits) > 1 else ''}{who.en} got 401 (refused): the server was started with an API key, and the caller sends {how.en}. Switching the key off would open the server to everybody.",
            f"{len(hits)} 个请求{who.zh}返回 401：服务器启动时设置了 API 密钥，而调用方{how.zh}。去掉密钥会使服务器对所有人开放。",
        ),
        evidence=quoted(hits[0], hits[-1]),
        fixes=[
            Fix(
                Words(
                    "give that caller the key of the server (the value of VLLM_API_KEY or --api-key), through its secret store",
                    "通过密钥管理把服务器的密钥（`VLLM_API_KEY` 或 `--api-key`）交给该调用方",
                ),
                'export OPENAI_API_KEY="$VLLM_API_KEY"',
            ),
            Fix(
                Words("or send it as a header in other clients", "其他客户端则以请求头发送"),
                f'curl -H "Authorization: Bearer $VLLM_API_KEY" {base}/v1/models',
            ),
        ],
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' -H \"Authorization: Bearer $VLLM_API_KEY\" {base}/v1/models` prints 200",
            f"`curl -s -o /dev/null -w '%{{http_code}}' -H \"Authorization: Bearer $VLLM_API_KEY\" {base}/v1/models` 输出 200",
        ),
        confidence=0.4
        if single
        else 0.93
        if len(hits) > 1 or not callers
        else 0.6,  # one of many: a stranger, not a fault
    )


RULES: Final = (
    Rule(
        id="N2",
        title=Words("The requested model name is not served", "请求的模型名未被提供"),
        symptoms=Words("`The model X does not exist`, 404", "`The model X does not exist`，404"),
        why=Words(
            "the name in the request is not the served name (alias, path, adapter)",
            "请求中的名字不是已提供的名字（别名、路径、适配器）",
        ),
        needs=Words("the list of /v1/models", "/v1/models 的列表"),
        remedy=Words("an id of /v1/models, or --served-model-name", "使用 /v1/models 中的 id，或 --served-model-name"),
        check=Words("one curl", "一次 curl"),
        judge=name_is_not_served,
        sees=(NO_MODEL, ADAPTERS),
    ),
    Rule(
        id="N3",
        title=Words("The path of the request is wrong", "请求路径错误"),
        symptoms=Words(
            "404 `Not Found` for `/v1/v1/...`, `//v1`, or a path without /v1",
            "对 `/v1/v1/...`、`//v1` 或缺少 /v1 的路径返回 404 `Not Found`",
        ),
        why=Words("the base URL of the client", "客户端的 base URL"),
        needs=Words("the paths in the access log", "访问日志中的路径"),
        remedy=Words("the base URL", "更正 base URL"),
        check=Words("one curl", "一次 curl"),
        judge=path_is_wrong,
        sees=(CALL,),
    ),
    Rule(
        id="N4",
        proof="live",
        title=Words("API key missing or wrong", "API 密钥缺失或错误"),
        symptoms=Words("401 for calls of /v1", "调用 /v1 返回 401"),
        why=Words("the caller sends no key, or another one", "调用方没有发送密钥，或发送了别的密钥"),
        needs=Words("which callers are refused", "哪些调用方被拒绝"),
        remedy=Words("give that caller the key", "把密钥交给该调用方"),
        check=Words("one curl with the key", "带密钥的一次 curl"),
        judge=key_is_missing,
        sees=(UNAUTHORIZED, SERVED),
    ),
)
