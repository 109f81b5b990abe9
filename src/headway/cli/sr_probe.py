"""`vllm-sr route probe`: a real request, and whether what came back is what was expected."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import httpx

from headway.cli.sr_client import answered, client, public_url
from headway.cli.sr_place import config_option
from headway.errors import HeadwayError

_ROUTING_HEADERS = (
    "x-request-id", "x-vsr-replay-id", "x-vsr-selected-recipe", "x-vsr-selected-decision", "x-vsr-selected-confidence",
    "x-vsr-selected-algorithm", "x-vsr-selected-model", "x-vsr-response-path",
)  # fmt: skip
_FINISHED = ("stop", "tool_calls", "function_call", "content_filter")


@click.command("probe")
@click.option("--prompt", help="One user message.")
@click.option("--messages", "messages_json", help="Messages as for chat completions, JSON.")
@click.option("--model", default="vllm-sr/auto", show_default=True, help="The name to ask for.")
@config_option
@click.option("--base-url", help="Public address of the router; otherwise the first listener of --config.")
@click.option("--api-key-env", default="OPENAI_API_KEY", show_default=True, help="Variable that holds the listener's key.")
@click.option("--temperature", type=float)
@click.option("--max-completion-tokens", type=click.IntRange(min=1))
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True)
@click.option("--debug/--no-debug", default=True, show_default=True, help="Ask for the trace.")
@click.option("--expect-status", type=int, default=200, show_default=True)
@click.option("--expect-recipe")
@click.option("--expect-decision")
@click.option("--expect-algorithm")
@click.option("--expect-selected-model")
@click.option("--expect-response-model")
def probe_command(
    prompt: str | None, messages_json: str | None, model: str, config: Path, base_url: str | None, api_key_env: str, temperature: float | None,
    max_completion_tokens: int | None, timeout: float, debug: bool, expect_status: int, expect_recipe: str | None, expect_decision: str | None,
    expect_algorithm: str | None, expect_selected_model: str | None, expect_response_model: str | None,
) -> None:  # fmt: skip
    """Send one request and check how it was routed. Prints JSON; exits with 1 when an expectation fails."""
    from headway.cli.sr_route import request_of

    body: dict[str, Any] = {"model": model, "messages": request_of(prompt, messages_json, None)["messages"]}
    if temperature is not None:
        body["temperature"] = temperature
    if max_completion_tokens is not None:
        body["max_completion_tokens"] = max_completion_tokens
    key = os.environ.get(api_key_env, "").strip()
    headers = {**({"x-vsr-debug": "true"} if debug else {}), **({"Authorization": f"Bearer {key}"} if key else {})}
    url = public_url(base_url, config)
    began = time.monotonic()
    response = answered(client(url, timeout, headers), url, "POST", "/v1/chat/completions", json=body)
    took = time.monotonic() - began
    expected = {
        "x-vsr-selected-recipe": expect_recipe,
        "x-vsr-selected-decision": expect_decision,
        "x-vsr-selected-algorithm": expect_algorithm,
        "x-vsr-selected-model": expect_selected_model,
    }
    answer = _body(response)
    checks = [_check("status", expect_status, response.status_code)]
    checks += [_check(name, value, response.headers.get(name, "")) for name, value in expected.items() if value is not None]
    if expect_response_model is not None:
        checks.append(_check("response.body.model", expect_response_model, answer.get("model", "") if isinstance(answer, dict) else ""))
    if 200 <= expect_status < 300:
        checks.append(_check("response.body.delivery", "complete", delivery(answer)))
    report = {
        "schema_version": "vllm-sr.route-probe.v1",
        "passed": all(check["passed"] for check in checks),
        "request": {"url": f"{url}/v1/chat/completions", "model": model, "message_count": len(body["messages"])},
        "response": {
            "status": response.status_code,
            "latency_ms": round(took * 1000, 3),
            "routing": {name: response.headers[name] for name in _ROUTING_HEADERS if name in response.headers},
            "trace": _trace(response),
            "body": answer,
        },
        "assertions": checks,
    }
    click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    if not report["passed"]:
        failed = ", ".join(str(check["field"]) for check in checks if not check["passed"])
        raise HeadwayError(f"the probe expected something else: {failed}", reason="probe_failed")


def delivery(answer: Any) -> str:
    """"complete" when every choice ended by itself and says or calls something; otherwise what is missing."""
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if not isinstance(choices, list) or not choices:
        return "the answer has no choices"
    for choice in choices:
        message = choice.get("message") or {}
        if choice.get("finish_reason") not in _FINISHED:
            return f"finish_reason is {choice.get('finish_reason')!r}"
        if not any(message.get(part) for part in ("content", "refusal", "tool_calls", "function_call")):
            return "a choice has neither text, tool call nor refusal"
    return "complete"


def _check(field: str, expected: Any, actual: Any) -> dict[str, Any]:
    return {"field": field, "expected": expected, "actual": actual, "passed": expected == actual}


def _body(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def _trace(response: httpx.Response) -> Any:
    try:
        return json.loads(response.headers["x-vsr-trace"])
    except (KeyError, ValueError):
        return None
