"""The first cause first, and consequences not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.doctor.case import Case
from headway.doctor.diagnosis import Report, diagnose
from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.log.scan import read_text
from headway.doctor.finding import Abstention, Fix, Found, Quote, Weight
from headway.doctor.rules.catalogue import sights
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

ANY = Words("words", "文字")


def rule(
    name: str,
    confidence: float = 0.95,
    weight: Weight = "fatal",
    line: int | None = 1,
    explains: tuple[str, ...] = (),
    found_explains: tuple[str, ...] = (),
    cause: Words = ANY,
) -> Rule:
    evidence = [Quote("log.txt", line, "text")] if line is not None else [Quote("context:host", None, "text")]
    found = Found(cause, evidence, [Fix(ANY, "do it")], ANY, confidence, weight, explains=found_explains)
    return _rule(name, lambda case: found, explains)


def _rule(name: str, judge: Callable[[Case], Found | Abstention | None], explains: tuple[str, ...] = ()) -> Rule:
    return Rule(name, Words(name, name), ANY, ANY, ANY, ANY, ANY, judge, explains=explains)


EMPTY = Case(Log(sources=("log.txt",)), Context({"host": {}}))


def order(*rules: Rule) -> list[str]:
    return [finding.rule.id for finding in diagnose(EMPTY, rules).findings]


def test_what_stops_comes_before_what_slows() -> None:
    assert order(rule("T1", weight="degraded", line=1), rule("O1", line=9)) == ["O1", "T1"]


def test_answers_come_before_suspicions() -> None:
    assert order(rule("O1", 0.5), rule("T1", 0.6, "remark")) == ["T1", "O1"]


def test_of_sure_causes_the_earlier_is_first() -> None:
    assert order(rule("A", 0.99, line=9), rule("B", 0.85, line=2)) == ["B", "A"]


def test_a_sure_cause_comes_before_an_earlier_doubtful_one() -> None:
    assert order(rule("A", 0.6, line=1), rule("B", 0.9, line=8)) == ["B", "A"]


def test_what_the_log_shows_comes_before_what_only_the_context_shows() -> None:
    assert order(rule("A", line=None), rule("B", line=8)) == ["B", "A"]


def test_consequences_are_dropped() -> None:
    assert order(rule("A", explains=("B",)), rule("B")) == ["A"]
    assert order(rule("A", found_explains=("B",)), rule("B")) == ["A"]


def test_consequences_of_consequences_are_dropped() -> None:
    assert order(rule("C"), rule("B", explains=("C",)), rule("A", explains=("B",))) == ["A"]


def test_a_suspicion_explains_nothing() -> None:
    assert set(order(rule("A", 0.5, explains=("B",)), rule("B"))) == {"A", "B"}


def test_of_causes_that_explain_each_other_the_surer_stays() -> None:
    assert order(rule("A", 0.7, explains=("B",)), rule("B", 0.9, explains=("A",))) == ["B"]
    assert order(rule("A", 0.9, explains=("B",)), rule("B", 0.9, explains=("A",))) == ["A"]


def test_a_rule_may_name_itself() -> None:
    assert order(rule("A", explains=("A",))) == ["A"]


def test_secrets_that_a_rule_wrote_are_masked() -> None:
    secret = "hf_abcdefghijklmnopqrstuvwx"
    report = diagnose(EMPTY, [rule("A", cause=Words(f"said {secret}", f"说 {secret}"))])
    assert secret not in repr(report.findings[0].found)


def case_of(text: str) -> Case:
    return Case(read_text("log.txt", text.encode(), sights()), Context())


def verdict(text: str) -> Report:
    return diagnose(case_of(text), [])


START = (
    "INFO 11-29 09:14:03 [__init__.py:216] Automatically detected platform cuda.\n"
    "(APIServer pid=6) INFO 11-29 09:14:04 [api_server.py:9] vLLM API server version 0.32.0\n"
    "(EngineCore pid=7) INFO 11-29 09:14:05 [core.py:93] Initializing a V1 LLM engine (v0.32.0) with config: model='m'\n"
    "(EngineCore pid=7) INFO 11-29 09:14:06 [gpu_model_runner.py:2602] Starting to load model m...\n"
)
READY = "(APIServer pid=6) INFO:     Application startup complete.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (START, "reading the weights (last step: line 4"),
        (START, "py-spy dump --pid 7"),
        (START.splitlines()[0] + "\n", "reading the configuration"),
        (START, "holds no error"),
        (START + "(EngineCore pid=7) ValueError: something new\n", "line 5 holds an error that no rule explains (ValueError: something new)"),
        (START + "(APIServer pid=6) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n", "line 5 only says"),
        ("hello\nworld\n", "none of the 2 lines is known"),
        ("", "the log is empty"),
    ],
)
def test_what_is_missing_is_named(text: str, said: str) -> None:
    report = verdict(text)
    assert report.findings == ()
    assert said in report.abstained[0].en
    assert said in report.verdict.en
    assert report.abstained[0].zh in report.verdict.zh


@pytest.mark.parametrize("text", [START + READY, "0.00.01 main: server is listening on http://127.0.0.1:8080 - starting the main loop\n"])
def test_a_server_that_came_up_is_healthy(text: str) -> None:
    report = verdict(text)
    assert report.abstained == ()
    assert "Nothing wrong was found" in report.verdict.en


def test_a_server_whose_beginning_was_cut_off_is_not_starting() -> None:
    statistics = (
        "(APIServer pid=6) INFO 11-29 09:15:14 [loggers.py:208] Engine 000: Avg prompt throughput: 310.0 tokens/s, Avg generation throughput: 88.0"
        " tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 2.1%, Prefix cache hit rate: 8.0%\n"
    )
    assert verdict(START.splitlines()[3] + "\n" + statistics).abstained == ()
    assert verdict(statistics).abstained == ()


def test_a_stopped_server_is_no_error() -> None:
    assert verdict(START + READY + "(APIServer pid=6) KeyboardInterrupt\n(APIServer pid=6) asyncio.exceptions.CancelledError\n").abstained == ()


def test_the_first_exception_of_a_chain_is_the_one() -> None:
    text = (
        "(EngineCore pid=7) ERROR 11-29 09:14:22 [core.py:9] Traceback (most recent call last):\n"
        "(EngineCore pid=7) ERROR 11-29 09:14:22 [core.py:9] ModuleNotFoundError: No module named 'tiktoken'\n"
        "(EngineCore pid=7) ERROR 11-29 09:14:22 [core.py:9] During handling of the above exception, another exception occurred:\n"
        "(EngineCore pid=7) ERROR 11-29 09:14:22 [core.py:9] ValueError: Converting failed\n"
        "(APIServer pid=6) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}\n"
    )
    exceptions = case_of(text).exceptions
    assert [hit["type"] for hit in exceptions.first] == ["ModuleNotFoundError"]
    assert [hit.line.number for hit in exceptions.umbrellas] == [5]
    assert exceptions.codes == {"EngineCore_DP0": -9}


def test_an_abstention_stands_in_the_verdict() -> None:
    report = diagnose(EMPTY, [_rule("A", lambda case: Abstention(Words("the size of /dev/shm is missing", "缺少 /dev/shm 的大小")))])
    assert "the size of /dev/shm is missing" in report.verdict.en
    assert report.abstained == (Words("the size of /dev/shm is missing", "缺少 /dev/shm 的大小"),)


def test_the_same_abstention_is_said_once() -> None:
    twice = [_rule(name, lambda case: Abstention(ANY)) for name in ("A", "B")]
    assert len(diagnose(EMPTY, twice).abstained) == 1


def test_a_rule_that_stumbles_costs_only_its_own_answer() -> None:
    def stumbles(case: Case) -> Found:
        raise TypeError("a secret value")

    report = diagnose(EMPTY, [_rule("A", stumbles), rule("B")])
    assert [finding.rule.id for finding in report.findings] == ["B"]
    assert "rule A could not read this case (TypeError)" in report.abstained[0].en
    assert "secret" not in report.abstained[0].en
