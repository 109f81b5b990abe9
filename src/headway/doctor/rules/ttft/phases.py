"""One phase before the first token that a request's times show: tokenising (F8), KV transfer (F10), images (F11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.first_token import total_of
from headway.doctor.facts.requests import AT_CLIENT, AT_SERVER, PREFILL, PROMPT_TOKENS, QUEUE, RequestRow
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

TRANSFER: Final = sight(
    "KV Transfer metrics: ", pattern=r"KV Transfer metrics: (?=.*Avg xfer time \(ms\)[=:] ?(?P<ms>\d+(?:\.\d+)?))(?:.*?Throughput \(MB/s\)[=:] ?(?P<rate>\d+(?:\.\d+)?))?", series=True
)
FETCHING: Final = sight("Failed to fetch image", "Timeout while fetching", "fetch_image", "VLLM_IMAGE_FETCH_TIMEOUT", "Error in loading multimodal data")

_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class Phase:
    """`column`: what tables call it, ending in `_s` or `_ms`. `hidden`: its time in a row without such a column, None =
    unknown. `stated`: seconds, quote and a remark where the log says them."""

    id: str
    column: re.Pattern[str]
    title: Words
    what: Words
    because: Words
    fixes: tuple[Fix, ...]
    symptoms: Words
    sees: tuple[Sight, ...] = ()
    hidden: Callable[[RequestRow], float | None] = lambda row: None
    stated: Callable[[Case], tuple[float, Quote, str] | None] = lambda case: None


def _before_the_queue(row: RequestRow) -> float | None:
    """Time at the server that is neither queue nor prefill, of a request with a huge prompt."""
    total, queue, prefill, tokens = row.seconds(*AT_SERVER), row.seconds(*QUEUE), row.seconds(*PREFILL), row.number(*PROMPT_TOKENS)
    characters = row.number("prompt_chars", "chars", "characters")
    if total is None or queue is None or prefill is None or max((tokens or 0) * 4, characters or 0) < 100_000:
        return None
    return total - queue - prefill


def _transfer_stated(case: Case) -> tuple[float, Quote, str] | None:
    hits = case.log.hits(TRANSFER)
    slow = [hit for hit in hits if hit.number("ms") >= 200]
    if len(slow) * 2 <= len(hits) or not slow:
        return None
    middle = sorted(slow, key=lambda hit: hit.number("ms"))[len(slow) // 2]
    rate = f", {middle.number('rate'):.0f} MB/s" if middle["rate"] else ""
    return middle.number("ms") / 1e3, middle.quote(), rate


PHASES: Final = (
    Phase(
        "F8",
        re.compile(r"(?i)(?:token(?:i[sz]|i[sz]ation|izer)|encode|render|template|pre_?queue|preprocess_text)\w*_m?s$"),
        Words("Tokenising a huge prompt", "对超长提示词分词"),
        Words("text is turned into tokens on the host before the request is queued", "请求入队之前在主机上把文本转成 token"),
        Words("It grows with the characters of the prompt and is done by one core of the API process.", "它随提示词字符数增长，由 API 进程的一个核完成。"),
        (
            Fix(Words("run two API processes, so that tokenising one huge prompt does not hold up the others", "运行两个 API 进程，避免为一个超长提示词分词时耽误其他请求"), "--api-server-count 2"),
            Fix(Words("send token ids instead of text for prompts of this size (tokenised by the client), or shorten them", "对这种大小的提示词由客户端分词后直接发送 token id，或缩短它")),
        ),
        Words("time before queueing, with prompts of 100,000 characters", "10 万字符的提示词，入队前耗时长"),
        hidden=_before_the_queue,
    ),
    Phase(
        "F10",
        re.compile(r"(?i)(?:kv|xfer|transfer|migrat)\w*_m?s$"),
        Words("The KV cache is transferred slowly between nodes", "KV 缓存在节点间传输慢"),
        Words("the KV cache travels from the prefill node to the decode node", "KV 缓存从预填充节点传到解码节点"),
        Words("The transport, not the computation, sets the first token.", "决定首 token 的是传输而不是计算。"),
        (
            Fix(Words("use the RDMA transport between the nodes instead of TCP", "节点之间使用 RDMA 传输代替 TCP"), "UCX_TLS=rc,cuda_copy,cuda_ipc UCX_NET_DEVICES=mlx5_0:1"),
            Fix(Words("send short prompts to a server that prefills and decodes itself: the transfer pays only for long ones", "短提示词交给自身完成预填充和解码的服务器：传输只对长提示词划算")),
        ),
        Words("transfer time between prefill and decode nodes", "预填充与解码节点之间的传输时间"),
        sees=(TRANSFER,),
        stated=_transfer_stated,
    ),
    Phase(
        "F11",
        re.compile(r"(?i)(?:image|img|mm|media|vision|fetch|video|audio)\w*_m?s$"),
        Words("Images are fetched and decoded first", "先要下载并解码图片"),
        Words("images are downloaded and decoded before the prefill", "预填充之前要下载并解码图片"),
        Words("The model waits for the network and one host core.", "模型在等网络和主机的一个核。"),
        (
            Fix(Words("send images as data (base64) or from storage beside the server, scaled to what the model reads", "以 base64 数据或从服务器旁的存储发送图片，并缩放到模型实际使用的尺寸")),
            Fix(Words("bound what a request may hold and keep decoded images", "限制每个请求的图片数量，并缓存解码结果")),
        ),
        Words("time to fetch and decode media", "媒体下载与解码时间"),
        sees=(FETCHING,),
    ),
)


def _judge(phase: Phase) -> Callable[[Case], Found | None]:
    def judge(case: Case) -> Found | None:
        seen = _measured(phase, case.requests)
        if seen is not None:
            seconds, total, quotes = seen
            share = f", {seconds / total:.0%} of the {total:.2f} s to the first token" if total else ""
            share_zh = f"，占首 token 时间 {total:.2f} 秒的 {seconds / total:.0%}" if total else ""
            return _found(phase, f"{seconds:.2f} s (median){share}", f"{seconds:.2f} 秒（中位数）{share_zh}", quotes, 0.85)
        stated = phase.stated(case)
        if stated is None:
            return None
        seconds, quote, more = stated
        return _found(phase, f"{seconds:.2f} s on average{more}", f"平均 {seconds:.2f} 秒{more}", [quote], 0.75 if seconds >= 1 or complains_of(case.context, "first token") else 0.6)

    return judge


def _measured(phase: Phase, rows: Sequence[RequestRow]) -> tuple[float, float | None, list[Quote]] | None:
    timed = [(value, row) for row in rows if (value := _seconds(phase, row)) is not None]
    if not timed:
        timed = [(value, row) for row in rows if (value := phase.hidden(row)) is not None]
    slow = [(value, row) for value, row in timed if value >= 0.3 and value >= _SHARE * _whole(row)]
    if len(slow) * 2 < len(timed) or not slow:
        return None
    seconds = median(value for value, _ in slow)
    totals = [total for _, row in slow if (total := _whole(row)) > 0]
    return seconds, median(totals) if totals else None, [row.quote for _, row in slow[:2]]


def _seconds(phase: Phase, row: RequestRow) -> float | None:
    names = [name for name in row.cells if phase.column.search(name)]
    return row.seconds(*(re.sub(r"_m?s$", "_s", name) for name in names)) if names else None


def _whole(row: RequestRow) -> float:
    return row.seconds(*AT_CLIENT) or total_of(row) or 0.0


def _found(phase: Phase, shown: str, shown_zh: str, evidence: list[Quote], confidence: float) -> Found:
    return Found(
        cause=Words(f"Before the first token {phase.what.en}: {shown}. {phase.because.en}", f"首 token 之前，{phase.what.zh}：{shown_zh}。{phase.because.zh}"),
        evidence=evidence,
        fixes=phase.fixes,
        verify=Words("the per-phase times of one request afterwards: this phase is below 0.1 s", "之后查看单个请求各阶段耗时：该阶段低于 0.1 秒"),
        confidence=confidence,
        weight="degraded",
        explains=("F3", "F13"),
    )


RULES: Final = tuple(
    Rule(
        id=phase.id,
        title=phase.title,
        symptoms=phase.symptoms,
        why=phase.what,
        needs=Words("times of one request by phase", "单个请求各阶段耗时"),
        remedy=phase.fixes[0].text,
        check=Words("per-phase times of one request", "单个请求各阶段耗时"),
        judge=_judge(phase),
        sees=phase.sees,
    )
    for phase in PHASES
)
