"""Only the first use is slow: compilation (F6), a grammar (F7), a model that sleeps or is not in memory (F12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.first_token import total_of
from headway.doctor.facts.launch import ENGINE_CONFIG, VERSION
from headway.doctor.facts.metrics import span_of
from headway.doctor.facts.requests import RequestRow, is_guided
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

COMPILED: Final = sight(
    "torch.compile takes",
    "Compiling a graph for",
    "Dynamo bytecode transform time",
    "kernel JIT compilation during inference",
    "JIT compiling",
    "Compiling kernel",
    "torch.compile and initial profiling",
    pattern=r"torch\.compile (?:takes|took) (?P<seconds>\d+(?:\.\d+)?)|Compiling a graph for .*?takes (?P<graph>\d+(?:\.\d+)?)|Dynamo bytecode transform time"
    r"|kernel JIT compilation during inference: (?P<kernel>\w+)|JIT compiling|Compiling kernel|initial profiling",
)
READY: Final = sight("Application startup complete", "main: server is listening", "The server is fired up and ready to roll", "model loaded and ready")
GRAMMAR: Final = sight(
    "Compiling FSM index",
    "Compiling regex to FSM",
    "rammar compilation took",
    "ompiled grammar in",
    "ompiling grammar",
    pattern=r"Compiling FSM index|Compiling regex to FSM|[Gg]rammar compilation took (?P<took>\d+(?:\.\d+)?)|[Cc]ompiled grammar in (?P<in>\d+(?:\.\d+)?)|[Cc]ompiling grammar",
)
WOKE: Final = sight("seconds to wake up tags", "seconds to fall asleep", pattern=r"It took (?P<seconds>\d+(?:\.\d+)?) seconds to (?:wake up tags (?P<tags>.+?)\.?$|fall asleep)")
SLEEPS: Final = sight("is_sleeping", "POST /sleep", pattern=r"[\"']?is_sleeping[\"']?\s*[:=]\s*[Tt]rue|POST /sleep")
MAPPED: Final = sight("mmap = true", "mmap: true", "llama_model_loader: mmap", "CPU_Mapped model buffer size")

_TIMES: Final = 5.0
_PORTS: Final = {"llama.cpp": "8080", "sglang": "30000"}


def first_request(case: Case) -> Found | None:
    rows = _timed(case.requests)
    after = _after_ready(case)
    slow = _only_first(rows)
    if slow is None:
        return _compiles_while_serving(case, after) if not rows else None
    first, rest = slow
    if is_guided(first) and not any(is_guided(row) for row in rows[1:]):
        return None
    lines, lines_zh, took = _compile_words(after)
    return Found(
        cause=Words(
            f"Only the first request is slow: {total_of(first) or 0:.1f} s to its first token against {rest:.2f} s for the {len(rows) - 1} after it{lines}. What is compiled at first use is ready afterwards.",
            f"只有第一个请求慢：首 token {total_of(first) or 0:.1f} 秒，其后 {len(rows) - 1} 个只要 {rest:.2f} 秒{lines_zh}。首次使用时编译的内容之后就已就绪。",
        ),
        evidence=[first.quote, rows[1].quote, *took],
        fixes=_warm_up(case),
        verify=Words(
            f"restart, run the warm-up, then time one request: its first token comes within about {max(rest * 2, 0.1):.1f} s", f"重启并预热，再测一个请求：首 token 约在 {max(rest * 2, 0.1):.1f} 秒内"
        ),
        confidence=0.92 if after else 0.75,
        weight="degraded",
        explains=("F3", "F12"),
    )


def _compiles_while_serving(case: Case, after: Sequence[Hit]) -> Found | None:
    """Without timings: lines that say that compiling went on after the server was ready."""
    if not after:
        return None
    seconds = sum(float(hit["seconds"] or 0) for hit in after)
    kernels = sorted({hit["kernel"] for hit in after if hit["kernel"]})
    complaint = complains_of(case.context, "first token")
    lines, lines_zh, took = _compile_words(after)
    return Found(
        cause=Words(
            f"Kernels are compiled after the server reported ready{lines}: the first request of each shape waits for that, later ones do not.",
            f"服务器就绪之后仍在编译{lines_zh}：每种形状的第一个请求要等它，之后的不用。",
        ),
        evidence=took,
        fixes=_warm_up(case),
        verify=Words("restart, run the warm-up: no compile line appears during requests any more", "重启并预热：处理请求期间不再出现编译行"),
        confidence=0.75 if seconds >= 5 else 0.7 if complaint else 0.55 if len(kernels) >= 3 else 0.45,
        weight="degraded",
    )


def _warm_up(case: Case) -> list[Fix]:
    model, port = case.launch.model, case.launch.value("port") or _PORTS.get(case.launch.program, "8000")
    fixes = [
        Fix(
            Words("send one warm-up request before the server is put into service (as a startup probe or after start)", "在服务器投入使用前发送一个预热请求（作为启动探针或启动后执行）"),
            f"""curl -s http://127.0.0.1:{port}/v1/completions -H 'Content-Type: application/json' -d '{{"model": "{model}", "prompt": "warm-up", "max_tokens": 8}}'"""
            if model
            else None,
        )
    ]
    if case.launch.program in ("vllm", ""):
        fixes.append(Fix(Words("keep the compile cache on a volume, so that a restart finds it", "把编译缓存放在持久卷上，重启时可直接使用"), "-v vllm-compile-cache:/root/.cache/vllm -v triton-cache:/root/.triton"))
    return fixes


def _after_ready(case: Case) -> list[Hit]:
    """Compile lines while the server serves: the last event before them is that it is ready, not that it starts."""
    if not case.log.sees(READY):
        return [hit for hit in case.log.hits(COMPILED) if hit["kernel"]]
    serving: dict[str, bool] = {}
    found: list[Hit] = []
    for hit in case.log.hits(READY, ENGINE_CONFIG, VERSION, COMPILED):
        if hit.match.re is READY.pattern:
            serving[hit.line.source] = True
        elif hit.match.re is not COMPILED.pattern:
            serving[hit.line.source] = False
        elif serving.get(hit.line.source):
            found.append(hit)
    return found


def _compile_words(after: Sequence[Hit]) -> tuple[str, str, list[Quote]]:
    seconds = max((float(hit["seconds"] or hit["graph"] or 0) for hit in after), default=0.0)
    kernels = len({hit["kernel"] for hit in after if hit["kernel"]})
    if not after:
        return "", "", []
    took = [hit.quote() for hit in after[:2]]
    if seconds:
        return f" (compilation after the start took {seconds:.1f} s)", f"（启动之后的编译耗时 {seconds:.1f} 秒）", took
    if kernels:
        return f" ({kernels} kernel(s) were JIT-compiled during requests)", f"（处理请求期间 JIT 编译了 {kernels} 个 kernel）", took
    return " (compile lines stand after the start)", "（启动之后出现编译行）", took


def _timed(rows: Sequence[RequestRow]) -> list[RequestRow]:
    return [row for row in rows if total_of(row) is not None]


def _only_first(rows: Sequence[RequestRow]) -> tuple[RequestRow, float] | None:
    """The first row and the median of the rest, when only the first is slow; a few may have waited for it."""
    if len(rows) < 3:
        return None
    first, rest = total_of(rows[0]) or 0.0, [total_of(row) or 0.0 for row in rows[1:]]
    usual = median(rest)
    late = sum(1 for value in rest if value > _TIMES * max(usual, 0.02))
    if first < _TIMES * usual or first - usual < 0.5 or late > len(rest) // 4:
        return None
    sizes = [row.number("prompt_tok", "prompt_tokens", "input_tok") or 0.0 for row in rows]
    return None if sizes[0] > 4 * median(sizes[1:]) > 0 else (rows[0], usual)


def first_grammar(case: Case) -> Found | None:
    rows = _timed(case.requests)
    guided = [row for row in rows if is_guided(row)]
    said = case.log.first(GRAMMAR)
    firsts, others = _first_of_each(guided)
    if firsts and others:
        slow, usual = median(total_of(row) or 0.0 for row in firsts), median(total_of(row) or 0.0 for row in others)
        if slow >= 3 * usual and slow - usual >= 0.3:
            return _grammar(case, f"{slow:.2f} s to the first token at the first use of a schema against {usual:.2f} s later", f"首次使用某个 schema 时首 token {slow:.2f} 秒，之后 {usual:.2f} 秒", [firsts[0].quote, others[0].quote, *([said.quote()] if said else [])], 0.85)
    if said is None:
        return None
    seconds = float(said["took"] or said["in"] or 0)
    if seconds < 0.3 and not complains_of(case.context, "first token"):
        return None
    shown = f"compiling a grammar took {seconds:.2f} s" if seconds else "a grammar is compiled when it is first used"
    shown_zh = f"编译语法耗时 {seconds:.2f} 秒" if seconds else "语法在首次使用时编译"
    return _grammar(case, shown, shown_zh, [said.quote()], 0.7 if seconds >= 0.3 else 0.6)


def _grammar(case: Case, shown: str, shown_zh: str, evidence: list[Quote], confidence: float) -> Found:
    return Found(
        cause=Words(
            f"A grammar is compiled at its first use: {shown}. The compiled grammar is kept while its text stays the same.", f"语法在首次使用时编译：{shown_zh}。只要文本不变，编译结果会保留。"
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words(
                    "pre-compile: send one short request with each schema after the start (max_tokens 1)", "预编译：启动后用每个 schema 各发送一个短请求（max_tokens 1）"
                ),
                '"max_tokens": 1',
            ),
            Fix(Words("send the identical schema text every time (same key order, no ids or dates in it), so that the cache finds it", "每次发送完全相同的 schema 文本（键顺序一致，不含 ID 或日期），以便命中缓存")),
        ],
        verify=Words("the same schema twice: the second first token is as fast as without a schema", "同一 schema 发送两次：第二次首 token 与不带 schema 一样快"),
        confidence=confidence,
        weight="degraded",
        explains=("F6",),
    )


def _first_of_each(guided: Sequence[RequestRow]) -> tuple[list[RequestRow], list[RequestRow]]:
    """Rows that use a schema for the first time, and those that use it again."""
    seen: set[str] = set()
    firsts: list[RequestRow] = []
    others: list[RequestRow] = []
    for row in guided:
        name = str(next((row.cells[column] for column in ("schema", "json_schema", "grammar", "guided", "guided_json", "response_format", "format", "structured") if column in row.cells), ""))
        (others if name in seen else firsts).append(row)
        seen.add(name)
    return firsts, others


def asleep_or_cold(case: Case) -> Found | None:
    woke = [hit for hit in case.log.hits(WOKE) if hit["tags"]]
    slept = case.log.first(WOKE, SLEEPS)
    if woke and sum(float(hit["seconds"]) for hit in woke) >= 0.5:
        seconds = max(float(hit["seconds"]) for hit in woke)
        return _wake(f"the model slept and took {seconds:.1f} s to wake when a request came", f"模型处于休眠，请求到来时唤醒用了 {seconds:.1f} 秒", [hit.quote() for hit in woke[:2]], 0.8)
    span = span_of(case.context)
    states = span.last.by("sleep_state", "engine_sleep_state") if span else {}
    if span is not None and states.get("awake") == 0:
        return _wake("the engine's sleep state says that it is not awake", "引擎的休眠状态显示未唤醒", [case.context.quote(f"metrics.{span.last.index}", f"engine_sleep_state awake {states['awake']:g}")], 0.8)
    if slept is not None and not woke and complains_of(case.context, "first token"):
        return _wake("the log says that the model was put to sleep and nothing woke it", "日志显示模型已进入休眠且没有被唤醒", [slept.quote()], 0.65)
    return _cold_pages(case)


def _cold_pages(case: Case) -> Found | None:
    rows = _timed(case.requests)
    slow = _only_first(rows)
    io = case.context.members("host.io")
    faults = next((value for key, value in io.items() if "major" in key and isinstance(value, (int, float))), None) if isinstance(io, Mapping) else None
    mapped = case.log.first(MAPPED)
    if slow is None or (mapped is None and not faults) or _after_ready(case):
        return None
    first, usual = slow
    weights = case.launch.model or case.launch.value("m")
    read = f", with {faults:g} major page faults" if faults else ""
    read_zh = f"，有 {faults:g} 次主缺页" if faults else ""
    quotes = [first.quote, *([mapped.quote()] if mapped else []), *([case.context.quote("host.io")] if faults else [])]
    return Found(
        cause=Words(
            f"The weights are mapped from disk and not yet in memory: the first request reads them, {total_of(first) or 0:.1f} s against {usual:.2f} s afterwards{read}.",
            f"权重以内存映射方式打开，尚未读入内存：第一个请求负责读取，{total_of(first) or 0:.1f} 秒，之后 {usual:.2f} 秒{read_zh}。",
        ),
        evidence=quotes,
        fixes=[
            Fix(Words("read the file ahead of the first request", "在第一个请求之前预读文件"), f"cat {weights} > /dev/null" if weights else None),
            Fix(Words("or load without mapping and keep it in memory", "或不用内存映射加载，并锁定在内存中"), "--no-mmap --mlock" if case.launch.program == "llama.cpp" else None),
        ],
        verify=Words("restart, read ahead, then time the first request: as fast as the others", "重启、预读后测第一个请求：与其他请求一样快"),
        confidence=0.75,
        weight="degraded",
        explains=("F6",),
    )


def _wake(en: str, zh: str, quotes: list[Quote], confidence: float) -> Found:
    return Found(
        cause=Words(f"The first token waits for the model: {en}.", f"首 token 在等模型就绪：{zh}。"),
        evidence=quotes,
        fixes=[
            Fix(Words("wake it before traffic comes", "在流量到来之前唤醒"), "curl -X POST http://127.0.0.1:8000/wake_up"),
            Fix(Words("do not let it sleep while it is in service, or send a request on a timer", "服务期间不要让其休眠，或定时发送请求")),
        ],
        verify=Words("curl -s http://127.0.0.1:8000/is_sleeping prints false; then the first token comes as fast as for later requests", "curl -s http://127.0.0.1:8000/is_sleeping 输出 false；之后首 token 与后续请求一样快"),
        confidence=confidence,
        weight="degraded",
    )


_PHASES: Final = Words("per-phase times of one request", "单个请求各阶段耗时")

RULES: Final = (
    Rule(
        id="F6",
        title=Words("The first request compiles", "第一个请求触发编译"),
        symptoms=Words("only request 0 is slow; compile or JIT lines after the start", "只有第一个请求慢；启动之后出现编译或 JIT 行"),
        why=Words("kernels and graphs are compiled at first use", "kernel 和计算图在首次使用时编译"),
        needs=Words("times of the first requests, the log from the start on", "最初几个请求的耗时、从启动开始的日志"),
        remedy=Words("a warm-up request before ready, the compile cache on a volume", "就绪前发送预热请求，编译缓存放在持久卷"),
        check=_PHASES,
        judge=first_request,
        sees=(COMPILED, READY),
    ),
    Rule(
        id="F7",
        title=Words("A grammar is compiled at its first use", "语法在首次使用时编译"),
        symptoms=Words("the first request with each schema is slow", "每个 schema 的第一个请求慢"),
        why=Words("compilation of a schema takes host time", "编译 schema 需要主机时间"),
        needs=Words("times of requests by schema", "按 schema 区分的请求耗时"),
        remedy=Words("pre-compile, keep schema texts identical", "预编译，保持 schema 文本完全一致"),
        check=_PHASES,
        judge=first_grammar,
        sees=(GRAMMAR,),
    ),
    Rule(
        id="F12",
        title=Words("The model sleeps or its pages are cold", "模型在休眠或其页面未载入内存"),
        symptoms=Words("the first request after a pause is slow", "闲置之后的第一个请求慢"),
        why=Words("weights have to come back to the device or into memory", "权重需要重新回到设备或内存"),
        needs=Words("sleep state, major page faults, times of requests", "休眠状态、主缺页数、请求耗时"),
        remedy=Words("wake before traffic, prefetch", "流量到来前唤醒、预读"),
        check=_PHASES,
        judge=asleep_or_cold,
        sees=(WOKE, SLEEPS, MAPPED),
    ),
)
