"""`vllm-sr test`: verdicts, exit codes, and the same against a router that runs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headway.cli.sr_test import test_command as command
from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected

CONFIG = """\
version: v0.3
providers:
  defaults: {model: small}
  models:
    - {name: small, backend_refs: [{endpoint: "127.0.0.1:8000"}]}
    - {name: large, backend_refs: [{endpoint: "127.0.0.1:8001"}]}
routing:
  modelCards: [{name: small}, {name: large}]
  signals:
    keywords:
      - {name: code, operator: OR, keywords: [python, "C++"]}
      - {name: stop, operator: OR, keywords: [forbidden]}
    role_bindings:
      - {name: admins, role: admin, subjects: [{kind: Group, name: ops}]}
    metadata:
      - {name: beta, key: cohort, predicate: {equals: beta}}
    systemone:
      - {name: risky, question: {type: noul, instructions: Is it risky?}}
  decisions:
    - {name: code, priority: 10, rules: {type: keyword, name: code}, modelRefs: [{model: large}]}
    - {name: ops, priority: 20, rules: {type: authz, name: admin}, modelRefs: [{model: large}]}
    - {name: beta, priority: 30, rules: {type: metadata, name: beta}, modelRefs: [{model: large}]}
    - name: guarded
      rules: {operator: AND, conditions: [{type: keyword, name: stop}, {type: systemone, name: risky}], on_unknown: fail_request}
      modelRefs: [{model: large}]
global:
  model_catalog:
    deployments:
      primary: {provider: model_runtime, endpoint: "http://127.0.0.1:9"}
"""


def run(tmp_path: Path, policy: str, *words: str) -> Result:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "policy.yaml").write_text(policy)
    return CliRunner().invoke(command, [str(tmp_path / "policy.yaml"), *words])


def cases(*lines: str) -> str:
    return "config: config.yaml\ncases:\n" + "".join(f"  - {line}\n" for line in lines)


PASSING = (
    '{prompt: "Explain C++ move semantics", expect: {decision: code, model: large, matched: ["keyword:code"], unmatched: ["authz:admin"]}}',
    '{name: small talk, prompt: hello, expect: {decision: "", model: small, status: selected, unknown: ["systemone:risky"]}}',
    '{name: admin, prompt: python, groups: [ops], expect: {decision: ops, recipe: default}}',
    '{name: cohort, messages: [{role: user, content: hi}], metadata: {cohort: beta}, expect: {decision: beta}}',
    '{name: direct, request: {model: large, messages: [{role: user, content: python}]}, expect: {decision: "", model: large}}',
    "{name: no answer, prompt: forbidden things, expect: {error: decision_unresolved}}",
    "{name: no model, prompt: hello, model: nope, expect: {error: model_not_available}}",
)


def test_everything_as_expected(tmp_path: Path) -> None:
    found = run(tmp_path, cases(*PASSING))
    assert found.exit_code == 0, found.output
    assert found.output.splitlines()[-1] == "7 of 7 as expected"
    assert found.output.count("ok  ") == 7


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("{prompt: hello, expect: {decision: code}}", "expected decision code, found (none)"),
        ('{prompt: python, expect: {decision: ""}}', "expected decision (none), found code"),
        ("{prompt: python, expect: {model: small}}", "expected model small, found large"),
        ("{prompt: python, expect: {algorithm: random}}", "expected algorithm random, found static"),
        ("{prompt: python, expect: {recipe: other}}", "expected recipe other, found default"),
        ("{prompt: python, expect: {status: fallback}}", "expected status fallback, found selected"),
        ('{prompt: python, expect: {matched: ["keyword:stop"]}}', "expected keyword:stop matched, found unmatched"),
        ('{prompt: python, expect: {unmatched: ["keyword:code"]}}', "expected keyword:code unmatched, found matched"),
        ('{prompt: python, expect: {matched: ["keyword:other"]}}', "expected keyword:other matched, found not evaluated"),
        ('{prompt: python, expect: {matched: ["decision:risky"]}}', "expected systemone:risky matched, found unknown"),
        ("{prompt: python, expect: {error: decision_unresolved}}", "expected error decision_unresolved, found none"),
        ("{prompt: forbidden, expect: {decision: code}}", "expected no error, found decision_unresolved"),
    ],
)
def test_each_expectation_can_fail(tmp_path: Path, case: str, says: str) -> None:
    found = run(tmp_path, cases(case, PASSING[0]))
    assert found.exit_code == 1
    assert f"        {says}" in found.output.splitlines()
    assert found.output.splitlines()[-1] == "1 of 2 as expected, 1 not"
    as_json = json.loads(run(tmp_path, cases(case, PASSING[0]), "--json").output)
    assert (as_json["passed"], as_json["failed"]) == (1, 1)
    assert as_json["cases"][0]["failures"] == [says]


@pytest.mark.parametrize(("case", "code"), [(PASSING[0], 0), ("{prompt: hello, expect: {decision: code}}", 1)])
def test_the_exit_code_of_the_program(tmp_path: Path, case: str, code: int) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "policy.yaml").write_text(cases(case))
    program = [sys.executable, "-c", "from headway.cli.sr import main; main()", "test", str(tmp_path / "policy.yaml")]
    assert subprocess.run(program, capture_output=True, check=False, timeout=100).returncode == code


def test_a_failure_tells_what_matched_and_what_could_not_be_asked(tmp_path: Path) -> None:
    lines = run(tmp_path, cases('{prompt: python, expect: {decision: ops}}')).output.splitlines()
    assert "        matched: keyword:code" in lines
    assert any(line.startswith("        systemone:risky: ") for line in lines)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("cases: []", "at least 1 items"),
        ("cases: [{prompt: hi, expect: {}}]", "can never fail"),
        ("cases: [{expect: {decision: code}}]", "exactly one of prompt, messages and request"),
        ('cases: [{prompt: " ", expect: {decision: code}}]', "empty"),
        ("cases: [{prompt: hi, expect: {decison: code}}]", 'Did you mean "decision"?'),
        ('cases: [{prompt: hi, expect: {matched: ["code"]}}]', "type:name"),
        ("cases: {", "line 1"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, policy: str, says: str) -> None:
    found = run(tmp_path, policy)
    assert isinstance(found.exception, ConfigRejected)
    assert says in str(found.exception)
    assert "line 1" in str(found.exception)


def test_a_configuration_that_is_wrong_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(CONFIG.replace("name: code}, model", "name: cod}, model"))
    assert isinstance(run(tmp_path, cases(PASSING[0]), "--config", str(tmp_path / "other.yaml")).exception, ConfigRejected)
    assert isinstance(run(tmp_path, "config: gone.yaml\ncases: [{prompt: a, expect: {model: small}}]").exception, ConfigError)


@pytest.fixture
def router() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The preview of a management address."""
    asked: list[dict[str, Any]] = []

    class Preview(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            text = body["messages"][0]["content"]
            answer = {"decision_result": {"decision_name": "code", "matched_signals": {"keywords": ["code"]}}, "selected_model": "large"}
            status = 200
            if text == "unresolved":
                answer, status = {**answer, "decision_error": "..."}, 503
            elif text == "refused":
                answer, status = {"error": {"code": "CLASSIFICATION_ERROR", "message": "no"}}, 500
            elif text == "no model":
                answer, status = {"error": {"code": "INVALID_ROUTING_MODEL", "message": "no"}}, 400
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Preview)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_against_a_router_that_runs(tmp_path: Path, router: tuple[str, list[dict[str, Any]]]) -> None:
    url, asked = router
    policy = cases(
        '{prompt: python, sampling_seed: 7, expect: {decision: code, model: large, matched: ["keyword:code"]}}',
        "{prompt: unresolved, expect: {error: decision_unresolved}}",
        "{prompt: refused, expect: {error: classification_error}}",
        "{prompt: no model, expect: {error: model_not_available}}",
        "{prompt: other, expect: {decision: ops}}",
    )
    found = run(tmp_path, policy, "--router", url)
    assert found.exit_code == 1
    assert found.output.splitlines()[-1] == "4 of 5 as expected, 1 not"
    assert asked[0] == {"messages": [{"role": "user", "content": "python"}], "model": "vllm-sr/auto", "preview_context": {"sampling_seed": 7}}


def test_what_a_running_router_cannot_be_told(tmp_path: Path, router: tuple[str, list[dict[str, Any]]]) -> None:
    url, asked = router
    assert isinstance(run(tmp_path, cases(PASSING[2]), "--router", url).exception, ConfigError)
    assert isinstance(run(tmp_path, cases(PASSING[0]), "--router", url, "--config", "x.yaml").exception, ConfigError)
    assert asked == []
