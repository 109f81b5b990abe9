"""Listeners of a configuration document."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from headway.router.config.document.node import Node
from headway.router.config.duration import PositiveDuration


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f'"{text}" is no network such as 10.0.0.0/8: {error}') from None
    return text


Network = Annotated[str, AfterValidator(_network)]
"""An IP network in CIDR notation."""


class ListenerTLS(Node):
    """PEM files; relative paths begin at the folder of the configuration. They are read again when they change."""

    cert_file: str = Field(min_length=1)
    key_file: str = Field(min_length=1)


class ListenerSystemOne(Node):
    """Public names of deployments, or of provider models with `api_format: systemone`, that clients may call natively."""

    models: list[str] = Field(min_length=1)
    max_deadline_ms: int | None = Field(default=None, gt=0)

    @field_validator("models")
    @classmethod
    def _exact_names(cls, names: list[str]) -> list[str]:
        if any(not name or name != name.strip() for name in names):
            raise ValueError("models are exact names: not empty, without spaces around them")
        if len(set(names)) != len(names):
            raise ValueError("models names the same model twice")
        return names


class ListenerIdentity(Node):
    """Whose identity headers count. With `trust_headers` they are believed from `trusted_peers`, and from nobody else."""

    trust_headers: bool = False
    trusted_peers: list[Network] | None = None


class KeyBudget(Node):
    """What a key may cost in one calendar period (UTC). What a request may cost is held back while it runs."""

    amount: float = Field(gt=0)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    per: Literal["day", "week", "month", "total"] = "month"


class ListenerKey(Node):
    """A named API key; an addition of Headway. The key itself, or the environment variable that holds it. Without `models` all are allowed."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    key: str | None = Field(default=None, min_length=1)
    key_env: str | None = Field(default=None, min_length=1)
    models: list[str] | None = Field(default=None, min_length=1)
    budget: KeyBudget | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ListenerKey:
        if (self.key is None) == (self.key_env is None):
            raise ValueError("a key needs exactly one of key and key_env")
        return self


class Listener(Node):
    """`timeout` is the longest silence of a connection. `models` empty or absent allows every model."""

    name: str = Field(min_length=1)
    address: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(ge=0, le=65535)
    timeout: PositiveDuration = "300s"
    api_keys: list[Annotated[str, Field(min_length=1)]] | None = None
    keys: list[ListenerKey] | None = None
    models: list[str] | None = None
    systemone: ListenerSystemOne | None = None
    tls: ListenerTLS | None = None
    identity: ListenerIdentity | None = None

    @field_validator("api_keys", "models")
    @classmethod
    def _empty_is_absent(cls, names: list[str] | None) -> list[str] | None:
        return names or None
