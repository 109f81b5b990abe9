"""`vllm-sr request`: one request through the router."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from headway.cli.sr_client import answered, client, public_url, refused
from headway.cli.sr_place import config_option
from headway.errors import ConfigError


@click.group("request")
def request_group() -> None:
    """Send a request through the router's public address."""


def _options(command: Any) -> Any:
    options = (
        click.option("--prompt", help="The text, instead of words after the command."),
        click.option("--model", default="vllm-sr/auto", show_default=True),
        config_option,
        click.option("--base-url", help="Public address of the router; otherwise the first listener of --config."),
        click.option("--api-key-env", default="OPENAI_API_KEY", show_default=True, help="Variable that holds the listener's key."),
        click.option("--json", "as_json", is_flag=True, help="Print the whole answer."),
        click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True),
        click.option("--temperature", type=float),
        click.option("--max-tokens", type=click.IntRange(min=1)),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("chat")
@click.argument("message", nargs=-1)
@click.option("--system", help="Instructions for the model.")
@_options
def chat_command(message: tuple[str, ...], system: str | None, prompt: str | None, model: str, as_json: bool, **where: Any) -> None:
    """Ask once; the answer goes to the terminal, the model that gave it to stderr."""
    messages = ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": _text(message, prompt)}]
    _send("/v1/chat/completions", {"model": model, "messages": messages}, as_json, **where)


@click.command("completion")
@click.argument("message", nargs=-1)
@_options
def completion_command(message: tuple[str, ...], prompt: str | None, model: str, as_json: bool, **where: Any) -> None:
    """Let a model continue a text."""
    _send("/v1/completions", {"model": model, "prompt": _text(message, prompt)}, as_json, **where)


def _text(words: tuple[str, ...], prompt: str | None) -> str:
    text = prompt if prompt is not None else " ".join(words)
    if not text.strip() or (prompt is not None and words):
        raise ConfigError("one text is needed", param="message", fix="Write it after the command, or give --prompt.")
    return text


def _send(
    path: str, body: dict[str, Any], as_json: bool, config: Path, base_url: str | None, api_key_env: str, timeout: float,
    temperature: float | None, max_tokens: int | None,
) -> None:  # fmt: skip
    body |= {name: value for name, value in (("temperature", temperature), ("max_tokens", max_tokens)) if value is not None}
    key = os.environ.get(api_key_env, "").strip()
    url = public_url(base_url, config)
    response = answered(client(url, timeout, {"Authorization": f"Bearer {key}"} if key else {}), url, "POST", path, json=body)
    if response.is_error:
        raise refused(response)
    answer = response.json()
    if as_json:
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    choice = answer["choices"][0]
    click.echo(choice["message"].get("content") or json.dumps(choice["message"].get("tool_calls")) if "message" in choice else choice["text"])
    told = [response.headers[name] for name in ("x-vsr-selected-model", "x-vsr-selected-decision") if name in response.headers]
    if told:
        click.echo(f"({', decision '.join(told)})", err=True)


request_group.add_command(chat_command)
request_group.add_command(completion_command)
