"""What probes bring, judged by the rules."""

from __future__ import annotations

from headway.doctor.collect.transcript import Transcript
from headway.doctor.evidence.context import Context
from headway.doctor.examine import examine_live


def test_names_of_processes_in_a_probe_do_not_show_that_a_server_is_loading() -> None:
    said = Transcript(
        [
            "http://127.0.0.1:8080/startup-status: ConnectError: [Errno 111] Connection refused",
            "Connected to 127.0.0.1 port 11999 in 0.3 ms",
            "port 11999 of this machine: 127.0.0.1 is held by pid 9 (python -m headway.cli.sr serve --config router.yaml), started 60 s ago",
        ]
    )
    answers = [finding for finding in examine_live(Context({"host": {"probes": said.lines}}), said).report.findings if finding.is_answer]
    assert all("loading and does not listen" not in finding.found.cause.en for finding in answers)


def test_a_part_of_an_answer_is_no_stuck_engine() -> None:
    said = Transcript(['"GET /health HTTP/1.1" 200', "the doctor's own request of 16 tokens was not complete after 60 s: 7 pieces came"])
    report = examine_live(Context({"endpoint": {"url": "http://h:1", "health": {"status": 200}}}), said).report
    assert report.findings == ()
    assert "7 pieces" in report.abstained[0].en


def test_an_engine_that_makes_tokens_for_others_is_not_stuck() -> None:
    said = Transcript(['"GET /health HTTP/1.1" 200', "the doctor's own request of 16 tokens got no token within 60 s"])
    samples = [{"t": t, "vllm:num_requests_running": 2.0, "vllm:num_requests_waiting": 9.0, "vllm:generation_tokens_total": 100.0 * t} for t in (0, 2, 4)]
    asked = {"endpoint": {"url": "http://h:1", "health": {"status": 200}}}
    busy = examine_live(Context({**asked, "metrics": samples}), said).report
    assert all(finding.rule.id != "N16" for finding in busy.findings)
    still = examine_live(Context({**asked, "metrics": [{**sample, "vllm:generation_tokens_total": 5.0} for sample in samples]}), said).report
    assert still.findings[0].rule.id == "N16"
