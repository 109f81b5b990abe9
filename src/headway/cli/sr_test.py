"""`vllm-sr test`: prompts, and the decisions that they must lead to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.errors import ConfigError, HeadwayError

if TYPE_CHECKING:
    from headway.router.policy.document import Case, Policy
    from headway.router.policy.judgement import Verdict

_PREVIEW = "/api/v1/routing/preview"
_SHOWN_ERRORS = 5
_REASON_OF_CODE: Mapping[str, str] = {"INVALID_ROUTING_MODEL": "model_not_available", "INVALID_INPUT": "invalid_request"}
"""What the public address calls an error of the management address; other codes are the reasons in capitals."""


@click.command("test")
@click.argument("policy", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="The configuration to test. [default: the policy's `config`, else config.yaml]")
@click.option("--router", help="Management address of a running router: its models answer. Otherwise nothing runs, and no model answers.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=30.0, show_default=True, help="Seconds to wait for an answer of --router.")
@click.option("--token-env", default="VSR_MGMT_TOKEN", show_default=True, help="Variable that holds the management token of --router.")
@click.option("--json", "as_json", is_flag=True, help="Print all verdicts as JSON.")
def test_command(
    policy: Path, config: Path | None, router: str | None, timeout: float, token_env: str, as_json: bool
) -> None:  # fmt: skip
    """Check that each prompt of POLICY is routed as it expects. Exits with 1 when one is not."""
    from headway.router.policy.document import read_policy

    wanted = read_policy(policy)
    if router is not None and config is not None:
        raise ConfigError("--config and --router are both given", param="router", fix="A running router has its own configuration: leave --config out.")
    verdicts = _asked(wanted.cases, router, timeout, token_env) if router is not None else _compiled(wanted, policy, config)
    failed = sum(not verdict.passed for verdict in verdicts)
    if as_json:
        told = {"passed": len(verdicts) - failed, "failed": failed, "cases": [verdict.as_json() for verdict in verdicts]}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        *lines, count = verdict_lines(verdicts)
        if router is None and any(verdict.failures and verdict.signal_errors for verdict in verdicts):
            lines.append("No model answers here; with --router http://127.0.0.1:8080 those of a running router do.")
        click.echo("\n".join([*lines, count]))
    if failed:
        sys.exit(1)


def _compiled(policy: Policy, path: Path, config: Path | None) -> Sequence[Verdict]:
    from headway.router.config.load import load_document
    from headway.router.policy.in_process import run_cases

    chosen = config or (path.parent / policy.config if policy.config is not None else Path("config.yaml"))
    return run_cases(load_document(chosen).document, policy.cases, os.environ)


def _asked(cases: Sequence[Case], router: str, timeout: float, token_env: str) -> Sequence[Verdict]:
    from headway.cli.sr_client import ManagementClient
    from headway.router.policy.judgement import judge

    client = ManagementClient(router, timeout, token_env)
    return [judge(case, number, _preview(client, case)) for number, case in enumerate(cases, 1)]


def _preview(client: Any, case: Case) -> Mapping[str, Any]:
    from headway.router.generation.names import AUTO_NAMES

    if case.user is not None or case.groups is not None:
        raise ConfigError("a running router previews for nobody: user and groups cannot be sent to it", param="router", fix="Test them without --router.")
    body = case.body(AUTO_NAMES[0])
    if case.sampling_seed is not None:
        body["preview_context"] = {"sampling_seed": case.sampling_seed}
    answer = client.call("POST", _PREVIEW, body, any_status=True)
    report = answer.json()
    if not isinstance(report, dict):
        raise HeadwayError(f"the router answered with status {answer.status_code} and no JSON object", reason="answer_invalid")
    if "decision_error" in report:
        return {**report, "error": "decision_unresolved"}
    if answer.is_error:
        found = report.get("error")
        code = str(found.get("code") if isinstance(found, dict) else answer.status_code)
        return {"error": _REASON_OF_CODE.get(code, code.lower())}
    return report


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """A line for each case, with the reasons below the ones that fail, and the count."""
    width = max(len(verdict.name) for verdict in verdicts)
    lines = []
    for verdict in verdicts:
        led = f"{verdict.decision or '(no decision)'} -> {verdict.model or '(no model)'}" if not verdict.error else f"error {verdict.error}"
        lines.append(f"{'ok  ' if verdict.passed else 'FAIL'}  {verdict.name:<{width}}  {led}")
        lines += [f"        {failure}" for failure in verdict.failures]
        if verdict.failures:
            lines.append(f"        matched: {', '.join(verdict.matched) or 'nothing'}")
            errors = sorted(verdict.signal_errors.items())
            lines += [f"        {key}: {reason}" for key, reason in errors[:_SHOWN_ERRORS]]
            if len(errors) > _SHOWN_ERRORS:
                lines.append(f"        and {len(errors) - _SHOWN_ERRORS} signals more without an answer")
    failed = sum(not verdict.passed for verdict in verdicts)
    return [*lines, f"{len(verdicts) - failed} of {len(verdicts)} as expected" + (f", {failed} not" if failed else "")]
