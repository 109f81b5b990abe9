"""N11: a page in a browser may not read the answers: CORS."""

from __future__ import annotations

import json
import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.network.server_address import served_at
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

BLOCKED: Final = sight(
    "blocked by CORS policy",
    "Access-Control-Allow-Origin",
    "Cross-Origin Request Blocked",
    "Disallowed CORS origin",
    pattern=r"(?:from origin '(?P<origin>https?://[^'\s]+)'.*)?(?:blocked by CORS|No 'Access-Control-Allow-Origin'|Access-Control-Allow-Origin.{0,3} (?:missing|header)|Cross-Origin Request Blocked|Disallowed CORS(?: origin (?P<named>https?://[^'\"\s]+))?)",
)
PREFLIGHT: Final = sight(
    '"OPTIONS /',
    "OPTIONS /v1",
    pattern=r"\"?OPTIONS (?P<path>/v1/\S+)(?: HTTP/[\d.]+)?\"? (?:[\d.]+ )?(?P<status>400|403|404|405)\b",
)
ORIGIN: Final = sight("Origin: http", pattern=r"Origin: (?P<origin>https?://\S+)")


def origin_is_not_allowed(case: Case) -> Found | None:
    """The browser's message, or preflight requests that were refused."""
    blocked, preflight = case.log.first(BLOCKED), case.log.first(PREFLIGHT)
    if blocked is None and preflight is None:
        return None
    named = case.log.first(ORIGIN)
    origin = (blocked["origin"] or blocked["named"] if blocked else "") or (named["origin"] if named else "")
    given = case.launch.value("allowed_origins")
    if given and not origin and "*" in given:
        return None
    page = Words(
        f"The page {origin}" if origin else "A page of another origin", f"页面 {origin}" if origin else "另一来源的页面"
    )
    set_to = Words(
        f" (--allowed-origins is {given})" if given else "", f"（--allowed-origins 为 {given}）" if given else ""
    )
    count = case.log.count(PREFLIGHT)
    refusals = Words(
        f"; {count} preflight requests (OPTIONS) were refused" + (f" with {preflight['status']}" if preflight else "")
        if count
        else "",
        f"；{count} 个预检请求（OPTIONS）被拒绝" + (f"（{preflight['status']}）" if preflight else "") if count else "",
    )
    value = json.dumps([origin])
    return Found(
        cause=Words(
            f"{page.en} may not call the server: the server does not allow its origin{set_to.en}{refusals.en}. curl works, because only browsers check this.",
            f"{page.zh}不能调用服务器：服务器没有允许其来源{set_to.zh}{refusals.zh}。curl 可用，因为只有浏览器检查这一点。",
        ),
        evidence=quoted(blocked, preflight),
        fixes=[
            Fix(
                Words("allow exactly that origin (--allowed-origins)", "只允许该来源（--allowed-origins）"),
                f"--allowed-origins '{value}'" if origin else None,
            ),
            Fix(Words("or serve page and API from one origin through a proxy", "或通过代理让页面与 API 同源")),
        ],
        verify=Words(
            f"`curl -si -X OPTIONS {served_at(case)}/v1/chat/completions -H \"Origin: {origin or '$ORIGIN'}\" -H 'Access-Control-Request-Method: POST'` answers 200 with access-control-allow-origin",
            f"`curl -si -X OPTIONS {served_at(case)}/v1/chat/completions -H \"Origin: {origin or '$ORIGIN'}\" -H 'Access-Control-Request-Method: POST'` 返回 200 且带 access-control-allow-origin",
        ),
        confidence=STATED
        if blocked
        else 0.85
        if re.search(r"40[05]", preflight["status"] if preflight else "")
        else 0.7,
    )


RULES: Final = (
    Rule(
        id="N11",
        title=Words("The browser's origin is not allowed (CORS)", "浏览器来源未被允许（CORS）"),
        symptoms=Words(
            "`blocked by CORS policy`, OPTIONS answered with 405", "`blocked by CORS policy`、OPTIONS 返回 405"
        ),
        why=Words("CORS is off unless origins are allowed", "除非允许来源，否则 CORS 是关闭的"),
        needs=Words("the origin of the page", "页面的来源"),
        remedy=Words("--allowed-origins with that origin", "用 --allowed-origins 允许该来源"),
        check=Words("a preflight by curl", "用 curl 做一次预检"),
        judge=origin_is_not_allowed,
        sees=(BLOCKED, PREFLIGHT, ORIGIN),
    ),
)
