"""N9: requests go on after their caller has left."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.network.time_limits import ABORTED
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

LEFT: Final = sight(
    '" 499 ',
    "client prematurely closed connection",
    "client disconnected",
    "Client disconnected",
    "ClientDisconnect",
    "client closed",
    pattern=r"\" 499 |client prematurely closed|[Cc]lient ?[Dd]isconnect|client closed (?:connection|request)",
)


def work_goes_on_after_the_caller_left(case: Case) -> Found | None:
    """Callers left, the engine aborted nothing, and the number of running requests did not fall."""
    left = case.log.hits(LEFT)
    running = [sample for sample in case.load if sample.running is not None]
    gone_from_context = [
        row
        for row in case.requests
        if re.search(
            r"(?i)disconnect|cancel|499|abort|left",
            str(row.cells.get("outcome") or row.cells.get("status") or row.cells.get("client") or ""),
        )
    ]
    gone = len(left) + len(gone_from_context)
    ended = [hit for hit in case.log.hits(ABORTED) if hit["id"] or hit["old"] or hit["other"]]
    if gone < 3 or len(ended) * 2 >= gone or not running:
        return None
    after = [
        sample for sample in running if not left or sample.quote.line is None or sample.quote.line > left[0].line.number
    ]
    before = [sample for sample in running if sample not in after]
    highest = max((sample.running or 0 for sample in before), default=0)
    if len(after) < 2 or not all((sample.running or 0) >= max(1, highest) for sample in after[-2:]):
        return None
    last = after[-1]
    return Found(
        cause=Words(
            f"{gone} callers left, the engine aborted {len(ended)} requests, and {int(last.running or 0)} are still running: nobody reads what they write. A proxy or a middleware in between keeps the connection or hides the disconnect.",
            f"{gone} 个调用方已离开，引擎只中止了 {len(ended)} 个请求，仍有 {int(last.running or 0)} 个在运行：没有人读取它们的输出。中间的代理或中间件保持了连接或隐藏了断开事件。",
        ),
        evidence=[*quoted(left[0] if left else None, left[-1] if left else None), last.quote],
        fixes=[
            Fix(
                Words("let the proxy close its side when the caller leaves", "让代理在调用方离开时关闭上游连接"),
                "proxy_ignore_client_abort off;",
            ),
            Fix(
                Words(
                    "remove middleware that swallows the disconnect (start without --middleware) and limit answers until then",
                    "去掉吞掉断开事件的中间件（启动时不带 --middleware），在此之前限制回答长度",
                ),
                '"max_tokens": 512',
            ),
        ],
        verify=Words(
            "start a long streamed request, end its curl with Ctrl-C: `num_requests_running` of /metrics falls within a second",
            "发起一个长的流式请求，用 Ctrl-C 结束 curl：/metrics 的 `num_requests_running` 在一秒内下降",
        ),
        confidence=0.7,
        weight="degraded",
    )


RULES: Final = (
    Rule(
        id="N9",
        title=Words("Requests go on after their caller has left", "调用方离开后请求仍在运行"),
        symptoms=Words("running does not fall after disconnects", "断开后 running 不下降"),
        why=Words("a proxy or middleware hides the disconnect", "代理或中间件隐藏了断开"),
        needs=Words("disconnects, aborts and running over time", "断开、中止与 running 的变化"),
        remedy=Words("let the proxy pass the disconnect on, remove the middleware", "让代理传递断开，去掉中间件"),
        check=Words("running falls after a disconnect", "断开后 running 下降"),
        judge=work_goes_on_after_the_caller_left,
        sees=(LEFT, ABORTED),
    ),
)
