"""`vllm-sr route`: what the router would do with a request, and what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headway.cli.sr_client import ManagementClient, management_options
from headway.cli.sr_probe import probe_command
from headway.errors import ConfigError

_MOST_BYTES = 10 * 2**20
_SHOWN_SIGNALS, _SHOWN_CONFIDENCES = 10, 5


@click.group("route")
def route_group() -> None:
    """Preview a routing decision, or probe a route with a real request."""


@click.command("preview")
@click.option("--prompt", help="One user message.")
@click.option("--messages", "messages_json", help="Messages as for chat completions, JSON.")
@click.option("--request-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A preview request, JSON.")
@click.option("--model", help="The name that the request asks for. [default: vllm-sr/auto]")
@click.option("--session-id", help="The session that the request belongs to.")
@click.option("--conversation-id", help="The conversation that the request belongs to.")
@click.option("--sampling-seed", type=click.IntRange(-(2**63), 2**63 - 1), help="Makes a random choice of the preview repeatable.")
@click.option("--trace/--no-trace", default=False, help="Show how each decision was evaluated.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer.")
@management_options(15.0)
def preview_command(
    prompt: str | None, messages_json: str | None, request_file: Path | None, model: str | None, session_id: str | None,
    conversation_id: str | None, sampling_seed: int | None, trace: bool, as_json: bool, endpoint: str | None, timeout: float, token_env: str,
) -> None:  # fmt: skip
    """Show which signals match, which decision wins and which model would answer, without asking it."""
    body = request_of(prompt, messages_json, request_file)
    if model is not None:
        body["model"] = model
    told = {"session_id": session_id, "conversation_id": conversation_id, "sampling_seed": sampling_seed}
    if context := {name: value for name, value in told.items() if value is not None}:
        body["preview_context"] = {**body.get("preview_context", {}), **context}
    query = {"trace": "true"} if trace else None
    answer = ManagementClient(endpoint, timeout, token_env).call("POST", "/api/v1/routing/preview", body, query=query).json()
    if as_json:
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    for line in preview_lines(answer):
        click.echo(line)


def request_of(prompt: str | None, messages_json: str | None, request_file: Path | None) -> dict[str, Any]:
    """Raises ConfigError unless exactly one is given and can be used."""
    given = [value for value in (prompt, messages_json, request_file) if value is not None]
    if len(given) != 1:
        raise ConfigError("one of --prompt, --messages and --request-file is needed", param="prompt", fix="Give exactly one of them.")
    if prompt is not None:
        return {"messages": [{"role": "user", "content": prompt}]}
    if messages_json is not None:
        return {"messages": _json(messages_json, list, "--messages")}
    assert request_file is not None
    if request_file.stat().st_size > _MOST_BYTES:
        raise ConfigError(f"{request_file} has more than {_MOST_BYTES >> 20} MiB", param="request_file")
    found: dict[str, Any] = _json(request_file.read_text(encoding="utf-8"), dict, str(request_file))
    return found


def _json(text: str, kind: type[Any], where: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}", param=where) from None
    if not isinstance(found, kind):
        raise ConfigError(f"{where} must hold a JSON {'list' if kind is list else 'object'}, found {type(found).__name__}", param=where)
    return found


def preview_lines(answer: dict[str, Any]) -> list[str]:
    """For a person: what was asked, what was found, what would answer. Most important facts have one line each."""
    decision = answer.get("decision_result", {})
    provenance = answer.get("selection_provenance") or {}
    types = answer.get("signal_types") or {}
    confidences = sorted((answer.get("signal_confidences") or {}).items(), key=lambda pair: (-pair[1], pair[0]))
    lines = [
        _line("model", answer.get("requested_model")),
        _line("recipe", answer.get("recipe")),
        _line("decision", decision.get("decision_name") or "(none)"),
        _line("algorithm", decision.get("algorithm")),
        _line("plugins", ", ".join(decision.get("plugins") or ())),
        _line("used signals", _listed(decision.get("used_signals") or {}, types)),
        _line("matched signals", _listed(decision.get("matched_signals") or {}, types)),
        _line("unmatched", str(sum(map(len, (decision.get("unmatched_signals") or {}).values())))),
        _line("confidences", ", ".join(f"{key} {value:.2f}" for key, value in confidences[:_SHOWN_CONFIDENCES])),
        _line("unknown", ", ".join(f"{key} ({reason})" for key, reason in (answer.get("signal_errors") or {}).items())),
        _line("routing", answer.get("routing_decision")),
        _line("selected model", answer.get("selected_model") or "(none)"),
        _line("status", answer.get("selection_status")),
        _line("method", answer.get("selection_method")),
        _line("reason", answer.get("selection_reason")),
        _line("evidence", provenance.get("mode")),
    ]
    for each in answer.get("eval_trace") or ():
        lines += ["", f"decision {each['decision_name']}: {'matched' if each['matched'] else 'not matched'}", *_tree(each["root_trace"], "  ")]
    return [line for line in lines if line is not None]


def _line(name: str, value: str | None) -> str | None:
    return f"{name + ':':17}{value}" if value else None


def _listed(groups: dict[str, list[str]], types: dict[str, str]) -> str:
    """`type:name` of each, as confidences and errors have it."""
    names = [f"{types.get(group, group)}:{name}" for group, found in groups.items() for name in found]
    more = f" and {len(names) - _SHOWN_SIGNALS} more" if len(names) > _SHOWN_SIGNALS else ""
    return ", ".join(names[:_SHOWN_SIGNALS]) + more


def _tree(node: dict[str, Any], indent: str) -> list[str]:
    name = f"{node.get('signal_type')}:{node.get('signal_name')}" if node["node_type"] == "leaf" else node["node_type"]
    label = f" [{node['label']}]" if node.get("label") else ""
    score = f" {node['confidence']:.2f}" if node.get("confidence") is not None else ""
    why = f" ({node['reason']})" if node.get("reason") else ""
    lines = [f"{indent}{node.get('truth', node['matched'])}  {name}{label}{score}{why}"]
    for child in node.get("children") or ():
        lines += _tree(child, indent + "  ")
    return lines


route_group.add_command(preview_command)
route_group.add_command(probe_command)
