"""Writes the troubleshooting guide from the rules: `python -m headway.doctor.guide en > docs/doctor-guide.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, cast

from headway.doctor.claims import CLAIMS
from headway.doctor.rules.catalogue import ROOMS, category_of, rules
from headway.doctor.rules.rule import Category, Rule
from headway.doctor.words import LANGUAGES, Language, Words

_TITLE: Final = Words("Troubleshooting guide", "故障排查指南")
_OTHER: Final = Words("[中文](doctor-guide.zh.md)", "[English](doctor-guide.md)")
_HEAD: Final = Words(
    "Every cause that `headway doctor` knows, made from its rules. Where a rule is marked *live*, a test causes the fault on a real process; *log* means that it is"
    " proven on recorded texts only. Look first, then change one thing, then check:\n\n"
    "```text\nheadway doctor                          # the servers that run here\nheadway doctor log server.log           # what went wrong first\n"
    "headway doctor serve http://host:8000   # slow, full, silent?\nheadway doctor router http://host:8899  # routing\n```",
    "`headway doctor` 认识的每一种原因，由其规则数据生成。标注 *live* 的规则由测试在真实进程上制造过该故障；*log* 表示只在记录的文本上验证过。"
    "先看证据，再一次只改一处，最后验证：\n\n"
    "```text\nheadway doctor                          # 本机运行的服务\nheadway doctor log server.log           # 最先出错的是什么\n"
    "headway doctor serve http://host:8000   # 慢、满、无响应？\nheadway doctor router http://host:8899  # 路由\n```",
)
_CATEGORIES: Final[dict[Category, Words]] = {
    "memory": Words("Out of memory", "显存与内存不足"),
    "throughput": Words("Low throughput", "吞吐低"),
    "ttft": Words("Late first token", "首 token 延迟高"),
    "loading": Words("The model does not load", "模型加载失败"),
    "network": Words("Network and clients", "网络与客户端"),
    "quantization": Words("Quantization", "量化"),
    "distributed": Words("Several devices and hosts", "分布式"),
    "runtime": Words("Model runtime and router", "模型运行时与路由器"),
}
_CLAIMS: Final = Words("Said in guides, and not so", "常见误导与事实")
_CLAIMS_HEAD: Final = Words("| said | true |", "| 说法 | 事实 |")
_FIELDS: Final = (
    ("symptoms", Words("You see", "现象")),
    ("why", Words("Why", "原因")),
    ("needs", Words("Find out", "需要了解")),
    ("remedy", Words("Do", "处理")),
    ("check", Words("Check", "验证")),
)


def guide(language: Language) -> str:
    return "\n".join(_lines(language)) + "\n"


def _lines(language: Language) -> Iterator[str]:
    yield from (f"# {_TITLE.speak(language)}", "", _OTHER.speak(language), "", _HEAD.speak(language), "")
    for category in ROOMS:
        yield from (f"## {_CATEGORIES[category].speak(language)}", "")
        for rule in rules():
            if category_of(rule.id) == category:
                yield from _entry(rule, language)
    yield from (f"## {_CLAIMS.speak(language)}", "", _CLAIMS_HEAD.speak(language), "|---|---|")
    for claim in CLAIMS:
        yield f"| {claim.said.speak(language)} | {claim.true.speak(language)} |"


def _entry(rule: Rule, language: Language) -> Iterator[str]:
    yield from (f"### {rule.id} {rule.title.speak(language)} *({rule.proof})*", "")
    for field, heading in _FIELDS:
        text = cast("Words", getattr(rule, field)).speak(language)
        if text:
            yield f"- **{heading.speak(language)}**{'：' if language == 'zh' else ':'}{'' if language == 'zh' else ' '}{text}"
    yield ""


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "en"
    if asked not in LANGUAGES:
        sys.exit(f"one of {', '.join(LANGUAGES)} expected, found {asked!r}")
    sys.stdout.write(guide(asked))
