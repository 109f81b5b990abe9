"""N10: a header, a body or an event of a stream is larger than somebody on the way takes."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.network.server_address import served_at
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

TOO_BIG: Final = sight(
    "Receive buffer too long",
    "header too large",
    "Header Or Cookie Too Large",
    "Request Header Fields Too Large",
    "too big header",
    "too large header",
    "too large body",
    "Request Entity Too Large",
    "Payload Too Large",
    "Chunk too big",
    "Chunk exceed the limit",
    "LineTooLong",
    "bytes when reading",
    ") when reading",
    "h11_max_incomplete_event_size",
    "[head_too_large]",
    "Headers and body over",
    pattern=r"(?P<h11>Receive buffer too long|h11_max_incomplete)|(?P<proxy_response>upstream sent too big header)|(?P<body>too large body(?:: (?P<bytes>\d+) bytes)?|Entity Too Large|Payload Too Large)|(?P<client>Chunk too big|Chunk exceed|Got more than \d+ bytes \(\d+\) when reading)"
    r"|(?P<head>LineTooLong|header too large|Header Or Cookie Too Large|Header Fields Too Large|too large header|\[head_too_large\])",
)


def event_or_header_too_large(case: Case) -> Found | None:
    hit = case.log.first(TOO_BIG)
    if hit is None:
        return None
    confidence = 0.92
    if hit["body"]:
        nbytes = int(hit["bytes"]) if hit["bytes"] else None
        megabytes = max(2, 2 ** (nbytes - 1).bit_length() >> 20) if nbytes else 64
        size = Words(f" of {nbytes:,} bytes" if nbytes else "", f"（{nbytes:,} 字节）" if nbytes else "")
        cause = Words(
            f"The proxy refuses a request body{size.en}: its limit (1 MiB by default in nginx) is smaller. The engine never saw it.",
            f"代理拒绝了请求正文{size.zh}：其上限（nginx 默认 1 MiB）更小。引擎从未收到它。",
        )
        fixes = [
            Fix(
                Words("raise the limit of the proxy for this location", "提高代理在该 location 的上限"),
                f"client_max_body_size {megabytes}m;",
            ),
            Fix(
                Words("in a Kubernetes ingress: as an annotation", "Kubernetes ingress：用注解设置"),
                f'nginx.ingress.kubernetes.io/proxy-body-size: "{megabytes}m"',
            ),
        ]
    elif hit["proxy_response"]:
        cause = Words(
            "The proxy refuses the answer's header: it is larger than its buffer (4 or 8 KiB by default in nginx).",
            "代理拒绝了响应头：它大于代理缓冲区（nginx 默认 4 或 8 KiB）。",
        )
        fixes = [
            Fix(
                Words("give the proxy larger header buffers", "增大代理的响应头缓冲区"),
                "proxy_buffer_size 32k; proxy_buffers 8 32k;",
            )
        ]
    elif hit["client"] or "Chunk" in hit.line.text or "aiohttp" in hit.line.text:
        stated = re.search(r"more than (\d+) bytes \((\d+)\)", hit.line.text)
        sizes = Words(
            f" ({int(stated[2]):,} bytes, its limit is {int(stated[1]):,})" if stated else "",
            f"（{int(stated[2]):,} 字节，上限为 {int(stated[1]):,}）" if stated else "",
        )
        buffer = max(2**20, 2 ** (int(stated[2]) - 1).bit_length()) if stated and len(stated[2]) < 12 else 2**20
        cause = Words(
            f"The client's reader refuses one event or header of the answer: a single line (a long tool call or many log-probabilities) is larger than its buffer{sizes.en}. The server is healthy.",
            f"客户端读取器拒绝了响应中的一个事件或响应头：单行内容（很长的工具调用或大量 logprobs）超过其缓冲区{sizes.zh}。服务器本身正常。",
        )
        fixes = [
            Fix(
                Words(
                    "give the client a larger read buffer (aiohttp: read_bufsize, in bytes)",
                    "增大客户端读缓冲区（aiohttp 的 read_bufsize，单位字节）",
                ),
                f"aiohttp.ClientSession(read_bufsize={buffer}, max_line_size={buffer}, max_field_size={buffer})",
            ),
            Fix(Words("or ask for fewer log-probabilities in a stream", "或在流式请求中减少 logprobs")),
        ]
    else:
        nginx = re.search(r"nginx|client sent too large|Cookie", hit.line.text)
        cause = Words(
            "A request line or header is larger than the limit of "
            + (
                "the proxy"
                if nginx
                else "the HTTP server (h11: 4 MiB and 256 headers in vLLM, 64 KiB in plain uvicorn)"
            )
            + ": usually a cookie, a token or trace headers that grew.",
            "请求行或请求头超过了"
            + ("代理" if nginx else "HTTP 服务器（h11：vLLM 为 4 MiB、256 个头，原生 uvicorn 为 64 KiB）")
            + "的上限：通常是变得过大的 cookie、令牌或追踪头。",
        )
        fixes = [
            Fix(
                Words(
                    "send smaller headers: drop cookies and trace headers that the server does not need",
                    "发送更小的请求头：去掉服务器不需要的 cookie 与追踪头",
                )
            )
        ]
        fixes.append(
            Fix(Words("or raise the limit of the proxy", "或提高代理上限"), "large_client_header_buffers 8 64k;")
            if nginx
            else Fix(
                Words("or raise the limit of the server", "或提高服务器上限"),
                "--h11-max-incomplete-event-size 8388608 --h11-max-header-count 512",
            )
        )
        confidence = 0.9
    return Found(
        cause=cause,
        evidence=quoted(hit),
        fixes=fixes,
        verify=Words(
            f"the same request sent by curl to {served_at(case)} answers 200",
            f"同一请求用 curl 发送到 {served_at(case)} 返回 200",
        ),
        confidence=confidence,
        explains=("N6", "N17"),
    )


RULES: Final = (
    Rule(
        id="N10",
        title=Words("A header, body or event is too large", "请求头、正文或事件过大"),
        symptoms=Words(
            "h11 `Receive buffer too long`, 431, 413, `Chunk too big`",
            "h11 `Receive buffer too long`、431、413、`Chunk too big`",
        ),
        why=Words(
            "a limit of the HTTP server, the proxy or the client's reader", "HTTP 服务器、代理或客户端读取器的上限"
        ),
        needs=Words("who refuses it, and the size", "由谁拒绝，以及大小"),
        remedy=Words("smaller headers, or that limit", "更小的请求头，或提高该上限"),
        check=Words("the same request by curl", "用 curl 发送同一请求"),
        judge=event_or_header_too_large,
        sees=(TOO_BIG,),
    ),
)
