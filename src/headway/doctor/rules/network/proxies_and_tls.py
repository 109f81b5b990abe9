"""N14 and N17: something else answers than the server that was meant: a proxy for a local address, or TLS against plain
HTTP."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.network.no_connection import RESET, of_callers, target_of
from headway.doctor.rules.network.server_address import port_of, served_at
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

VARIABLE: Final = sight(
    "_proxy=",
    "_PROXY=",
    "_proxy:",
    "_PROXY:",
    "_PROXY ==",
    "_proxy ==",
    pattern=r"\b(?P<name>(?:https?|all|HTTPS?|ALL)_(?:proxy|PROXY))(?: ==|[=:]) ?['\"]?(?P<value>[^\s'\"]+)",
)
NO_PROXY: Final = sight("no_proxy", "NO_PROXY", pattern=r"\b(?:no_proxy|NO_PROXY)[=:] ?['\"]?(?P<value>[^\s'\"]*)")
PROXY_ANSWER: Final = sight(
    "Server: squid",
    "X-Squid-Error",
    "ERR_CONNECT_FAIL",
    "ERR_ACCESS_DENIED",
    "The requested URL could not be retrieved",
    "Via: 1.",
    "ProxyError",
    "Proxy Authentication Required",
    "Tunnel connection failed",
    "Uses proxy env variable",
    "Unable to connect to proxy",
    "X-Cache: MISS from",
    "Proxy-Connection",
    "Zscaler",
    "BlueCoat",
    "<html",
    "<!DOCTYPE",
    pattern=r"Error code: (?:403|407|50\d) - .{0,20}<(?:html|!DOCTYPE)|Server: squid|X-Squid-Error|ERR_CONNECT_FAIL|ERR_ACCESS_DENIED|The requested URL could not be retrieved|Via: 1\.|ProxyError|Proxy Authentication Required|Tunnel connection failed|Uses proxy env variable|connect to proxy|X-Cache: MISS|Zscaler|BlueCoat|> Proxy-Connection",
)
LOCAL_CALL: Final = sight(
    "curl",
    "base_url",
    "Trying 127.0.0.1",
    "http://localhost",
    "http://127.0.0.1",
    "http://10.",
    "http://192.168.",
    "http://172.",
    "> GET http://",
    "> POST http://",
    pattern=r"https?://(?P<host>localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+|[\w\-]+)(?::\d+)?/",
)


_NEAR: Final = 5  # lines; curl names the proxy before it prints the request
_FAR: Final = 80  # lines of others may stand between
_SENT_TO_A_PROXY: Final = re.compile(r"> (?:GET|POST) http://")  # a server itself is asked for a path only


def proxy_catches_local_calls(case: Case) -> Found | None:
    """An answer of a proxy to a call for an address of this machine or network."""
    answer = case.log.first(PROXY_ANSWER)
    variables = [hit for hit in case.log.hits(VARIABLE) if hit["value"] not in ("", "''", '""')]
    in_context = [
        name
        for name, value in case.context.members("env").items()
        if re.fullmatch(r"(?i)(?:https?|all)_proxy", name) and value
    ]
    if answer is None or re.search(r"huggingface|/resolve/|hub|pypi", answer.line.text):
        return None
    calls = [hit for hit in case.log.hits(LOCAL_CALL) if not re.search(r"(?i)_proxy", hit.line.text)]
    near = [hit for hit in calls if 0 < hit.line.number - answer.line.number <= (_FAR if _SENT_TO_A_PROXY.search(hit.line.text) else _NEAR)]
    call = next((hit for hit in reversed(calls) if hit.line.number <= answer.line.number), next(iter(near), None))
    page = answer.line.text[answer.match.start() :].startswith("Error code")
    if not variables and not in_context and (call is None or page):
        return None
    host = call["host"].strip("[]") if call else "127.0.0.1"
    name = variables[0]["name"] if variables else in_context[0] if in_context else "HTTP_PROXY"
    proxy = re.sub(r"//[^/@]*@", "//", variables[0]["value"]) if variables else ""
    if not proxy and "ProxyError" in answer.line.text and (dialled := target_of(answer.line.text)):
        proxy = f"{dialled[0]}:{dialled[1]}"
    exempt = case.log.first(NO_PROXY)
    now = (exempt["value"] if exempt else "") or case.context.text("env.no_proxy") or case.context.text("env.NO_PROXY")
    entries = [entry for entry in now.split(",") if entry]
    for wanted in (
        "localhost",
        "127.0.0.1",
        *(() if host in ("localhost", "127.0.0.1", "0.0.0.0", "::1") else (host,)),
    ):
        if wanted not in entries:
            entries.append(wanted)
    value = ",".join(entries)
    base = served_at(case) if host in ("localhost", "127.0.0.1", "0.0.0.0") else f"http://{host}:{port_of(case)}"
    through = Words(f" ({proxy})" if proxy else "", f"（{proxy}）" if proxy else "")
    return Found(
        cause=Words(
            f"The call to {host} went to the proxy of {name}{through.en}, and the answer is the proxy's, not the server's: the proxy cannot reach an address of this machine. The server itself is not involved.",
            f"对 {host} 的调用被发送到 {name} 指定的代理{through.zh}，得到的是代理的回应而不是服务器的：代理无法访问本机地址。服务器本身与此无关。",
        ),
        evidence=quoted(answer, variables[0] if variables else None, call)
        + ([case.context.quote(f"env.{in_context[0]}")] if in_context and not variables else []),
        fixes=[
            Fix(
                Words(
                    "exempt local addresses in the caller's environment (both spellings)",
                    "在调用方环境中豁免本地地址（大小写两种写法）",
                ),
                f"export no_proxy={value} NO_PROXY={value}",
            ),
            Fix(Words("or for one call", "或仅对单次调用"), f"curl --noproxy '*' {base}/v1/models"),
        ],
        verify=Words(
            f"`no_proxy={value} curl -si {base}/v1/models` answers 200 with `server: uvicorn`",
            f"`no_proxy={value} curl -si {base}/v1/models` 返回 200，且带 `server: uvicorn`",
        ),
        confidence=(STATED if variables or in_context else 0.8) if call else 0.5,
        explains=("N1", "N8"),
    )


NOT_HTTP: Final = sight("Invalid HTTP request received")
NOT_TLS: Final = sight(
    "wrong version number",
    "WRONG_VERSION_NUMBER",
    "packet length too long",
    "record layer failure",
    "RECORD_LAYER_FAILURE",
    "ERR_SSL_PROTOCOL_ERROR",
    "EPROTO",
    "server gave HTTP response to HTTPS client",
    "first record does not look like a TLS handshake",
    "unknown protocol",
    "Unsupported or unrecognized SSL message",
)
PLAIN_TO_TLS: Final = sight(
    "this port speaks TLS",  # our own probe
    "plain HTTP request was sent to HTTPS port",
    "Client sent an HTTP request to an HTTPS server",
    "SSL: HTTP_REQUEST",
    "[SSL: UNEXPECTED_EOF",
    "http request (_ssl",
)
UNTRUSTED: Final = sight(
    "CERTIFICATE_VERIFY_FAILED",
    "self-signed certificate",
    "self signed certificate",
    "unable to get local issuer certificate",
    "certificate signed by unknown authority",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "hostname mismatch",
    "certificate has expired",
    "[certificate_refused]",
)


_SEVERAL: Final = 5  # fewer are as likely a scanner's


def tls_does_not_match(case: Case) -> Found | None:
    garbage, client, plain, untrusted = (case.log.first(seen) for seen in (NOT_HTTP, NOT_TLS, PLAIN_TO_TLS, UNTRUSTED))
    if untrusted is not None and re.search(r"huggingface|/resolve/|hub|pypi", untrusted.line.text):
        untrusted = None
    secure = bool(case.launch.value("ssl_certfile"))
    port = port_of(case)
    base = served_at(case)
    if plain is None and secure:
        plain = next((hit for hit in of_callers(case, RESET) if "https://" not in hit.line.text), None)
    if client is not None and (dialled := target_of(client.line.text)) and dialled[0] not in ("0.0.0.0", "::"):
        base = f"http://{dialled[0]}:{dialled[1]}"
    if client is None and plain is None and untrusted is None:
        count = case.log.count(NOT_HTTP)
        if garbage is None or count < _SEVERAL or secure:
            return None
        return Found(
            cause=Words(
                f"{count} connections sent bytes that are no HTTP request: most often a client that speaks TLS (https://) to this plain HTTP server; a port scanner looks the same.",
                f"有 {count} 个连接发来的字节不是 HTTP 请求：最常见的是客户端用 TLS（https://）访问这个明文 HTTP 服务器；端口扫描看起来也一样。",
            ),
            evidence=quoted(garbage, case.log.last(NOT_HTTP)),
            fixes=_to_plain(case, base),
            verify=Words(
                f"`curl -s -o /dev/null -w '%{{http_code}}' {base}/health` prints 200 and the warning does not come again",
                f"`curl -s -o /dev/null -w '%{{http_code}}' {base}/health` 输出 200，且警告不再出现",
            ),
            confidence=0.75,
        )
    if plain is not None and client is None:
        return Found(
            cause=Words(
                f"The client speaks plain HTTP to port {port}, which serves TLS.",
                f"客户端用明文 HTTP 访问提供 TLS 的端口 {port}。",
            ),
            evidence=quoted(plain),
            fixes=[
                Fix(
                    Words("use https:// in the caller's base URL", "在调用方 base URL 中使用 https://"),
                    f"base_url={base.replace('http://', 'https://')}/v1",
                )
            ],
            verify=Words(
                f"`curl -s -o /dev/null -w '%{{http_code}}' {base.replace('http://', 'https://')}/health` prints 200",
                f"`curl -s -o /dev/null -w '%{{http_code}}' {base.replace('http://', 'https://')}/health` 输出 200",
            ),
            confidence=0.92,
            explains=("N1",),
        )
    if client is None and untrusted is not None:
        expired, mismatch = "expired" in untrusted.line.text, "mismatch" in untrusted.line.text
        why = (
            Words("it has expired", "证书已过期")
            if expired
            else Words("it is made for another host name", "证书对应的是另一个主机名")
            if mismatch
            else Words(
                "it is self-signed or its issuer is not known to the caller", "证书是自签名的，或其签发者不被调用方信任"
            )
        )
        return Found(
            cause=Words(
                f"TLS works, but the caller does not trust the server's certificate: {why.en}. Switching the check off would hide any interception.",
                f"TLS 可用，但调用方不信任服务器证书：{why.zh}。关闭校验会掩盖任何中间人攻击。",
            ),
            evidence=quoted(untrusted),
            fixes=[
                Fix(
                    Words(
                        "renew the certificate, with the host name that callers use",
                        "更新证书，并包含调用方使用的主机名",
                    ),
                    "--ssl-certfile server.pem --ssl-keyfile server.key",
                )
                if expired or mismatch
                else Fix(
                    Words("give the caller the issuer's certificate", "把签发者证书交给调用方"),
                    "export SSL_CERT_FILE=/etc/ssl/certs/company-ca.pem REQUESTS_CA_BUNDLE=/etc/ssl/certs/company-ca.pem",
                )
            ],
            verify=Words(
                "`openssl s_client -connect HOST:PORT -brief </dev/null` says `Verification: OK`".replace(
                    "HOST:PORT", _host_port(untrusted.line.text, port)
                ),
                "`openssl s_client -connect HOST:PORT -brief </dev/null` 显示 `Verification: OK`".replace(
                    "HOST:PORT", _host_port(untrusted.line.text, port)
                ),
            ),
            confidence=0.9,
            title=Words("The certificate is not trusted", "证书不受信任"),
        )
    count = case.log.count(NOT_HTTP)
    seen = Words(
        f" (the server logged {count} requests that are no HTTP)" if count else "",
        f"（服务器记录了 {count} 个非 HTTP 请求）" if count else "",
    )
    return Found(
        cause=Words(
            f"The client speaks TLS (https://) to a server that speaks plain HTTP on port {port}{seen.en}. OpenSSL and the certificate are not the problem.",
            f"客户端用 TLS（https://）访问在端口 {port} 上只提供明文 HTTP 的服务器{seen.zh}。问题不在 OpenSSL 或证书。",
        ),
        evidence=quoted(client, garbage),
        fixes=_to_plain(case, base),
        verify=Words(
            f"`curl -s -o /dev/null -w '%{{http_code}}' {base}/health` prints 200 (or, with a certificate, the same with https://)",
            f"`curl -s -o /dev/null -w '%{{http_code}}' {base}/health` 输出 200（若配置证书则用 https://）",
        ),
        confidence=STATED,
        explains=("N1", "N6"),
    )


def _host_port(text: str, port: int) -> str:
    target = target_of(text)
    return f"{target[0]}:{target[1]}" if target else f"127.0.0.1:{port}"


def _to_plain(case: Case, base: str) -> list[Fix]:
    return [
        Fix(Words("use http:// in the caller's base URL", "在调用方 base URL 中使用 http://"), f"base_url={base}/v1"),
        Fix(
            Words("or give the server a certificate, so that it speaks TLS", "或给服务器配置证书，使其提供 TLS"),
            "--ssl-certfile server.pem --ssl-keyfile server.key",
        ),
    ]


RULES: Final = (
    Rule(
        id="N14",
        title=Words("Proxy variables catch local calls", "代理变量截获了本地调用"),
        symptoms=Words("answers of a proxy for a local address", "访问本地地址却得到代理的回应"),
        why=Words("HTTP_PROXY is set and the address is not exempt", "设置了 HTTP_PROXY，而该地址未被豁免"),
        needs=Words("the proxy variables of the caller", "调用方的代理变量"),
        remedy=Words(
            "exempt local addresses: no_proxy=localhost,127.0.0.1", "豁免本地地址：no_proxy=localhost,127.0.0.1"
        ),
        check=Words("one curl with no_proxy", "带 no_proxy 的一次 curl"),
        judge=proxy_catches_local_calls,
        sees=(VARIABLE, NO_PROXY, PROXY_ANSWER, LOCAL_CALL),
    ),
    Rule(
        id="N17",
        proof="live",
        title=Words("TLS on one side only", "只有一侧使用 TLS"),
        symptoms=Words(
            "`Invalid HTTP request received`, `wrong version number`",
            "`Invalid HTTP request received`、`wrong version number`",
        ),
        why=Words("https:// against a plain HTTP server, or the reverse", "用 https:// 访问明文 HTTP 服务器，或相反"),
        needs=Words(
            "the scheme in the caller's URL, the server's certificate options", "调用方 URL 的协议、服务器的证书参数"
        ),
        remedy=Words("http://, or a certificate for the server", "使用 http://，或给服务器配置证书"),
        check=Words("one curl", "一次 curl"),
        judge=tls_does_not_match,
        sees=(NOT_HTTP, NOT_TLS, PLAIN_TO_TLS, UNTRUSTED, RESET),
    ),
)
