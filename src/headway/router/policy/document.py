"""The file of a policy's tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected, has_errors
from headway.router.config.document.names import Name
from headway.router.config.document.node import Node
from headway.router.config.schema_errors import schema_diagnostics
from headway.router.config.yaml_reading import MAX_BYTES, read_yaml


def _signal_key(key: str) -> str:
    kind, _, name = key.partition(":")
    if not kind or not name:
        raise PydanticCustomError("signal_key", "a signal is written as type:name, such as keyword:code; found {key}", {"key": repr(key)})
    return f"systemone:{name}" if kind == "decision" else key


SignalKey = Annotated[str, AfterValidator(_signal_key)]


class Expectation(Node):
    """What must be so. `decision` "" stands for no decision: the default model answers. `matched`, `unmatched` and `unknown` name signals (and
    projections) as `type:name`. `error` expects that routing ends in an error with this reason."""

    decision: str | None = None
    recipe: str | None = None
    model: str | None = None
    algorithm: str | None = None
    status: str | None = None
    matched: list[SignalKey] | None = None
    unmatched: list[SignalKey] | None = None
    unknown: list[SignalKey] | None = None
    error: str | None = None

    @model_validator(mode="after")
    def _expects_something(self) -> Expectation:
        if not self.model_fields_set:
            raise PydanticCustomError("expectation_empty", "an expectation that expects nothing can never fail")
        return self


class Case(Node):
    """One request: a prompt, messages or a whole chat completions body. `user` and `groups` are what an authenticated caller is known by."""

    name: Name | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = Field(default=None, min_length=1)
    request: dict[str, Any] | None = None
    model: str | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    groups: list[str] | None = None
    sampling_seed: int | None = None
    expect: Expectation

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Case:
        if sum(given is not None for given in (self.prompt, self.messages, self.request)) != 1:
            raise PydanticCustomError("case_request", "exactly one of prompt, messages and request is needed")
        if self.prompt is not None and not self.prompt.strip():
            raise PydanticCustomError("case_prompt", "the prompt is empty")
        return self

    def title(self, number: int) -> str:
        """Its name, or the beginning of what it asks."""
        if self.name is not None:
            return self.name
        return " ".join(self.prompt.split())[:60] if self.prompt is not None else f"case {number}"

    def body(self, default_model: str) -> dict[str, Any]:
        """As chat completions."""
        messages = [{"role": "user", "content": self.prompt}] if self.prompt is not None else self.messages
        body: dict[str, Any] = dict(self.request) if self.request is not None else {"messages": messages}
        if self.metadata is not None:
            body["metadata"] = self.metadata
        return {**body, "model": self.model or body.get("model") or default_model}


class Policy(Node):
    """`config` is the configuration that is tested, relative to this file."""

    config: str | None = None
    cases: Annotated[list[Case], Field(min_length=1, max_length=100_000)]


def read_policy(path: Path) -> Policy:
    """Raises ConfigError `policy_unreadable`, ConfigRejected with every error and its line."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES >> 20} MiB", reason="policy_unreadable", param=str(path), fix="Split it.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", reason="policy_unreadable", param=str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text", reason="policy_unreadable", param=str(path)) from None
    yaml = read_yaml(text, {})
    if yaml.data is None or has_errors(yaml.diagnostics):
        raise ConfigRejected(str(path), yaml.diagnostics)
    try:
        return Policy.model_validate(yaml.data)
    except ValidationError as error:
        found = schema_diagnostics(error, yaml.data, root=Policy)
        raise ConfigRejected(str(path), sorted((replace(each, line=yaml.line(each.path)) for each in found), key=lambda each: each.line or 0)) from None
