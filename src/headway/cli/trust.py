"""Whose certificates the client commands take, and which one they show."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from headway.errors import ConfigError

C = TypeVar("C", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Trust:
    """Files of PEM: authorities to believe beside those of the system, and a certificate of one's own with its key."""

    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    def context(self) -> ssl.SSLContext:
        """SSL_CERT_FILE and SSL_CERT_DIR replace the system's authorities, as in OpenSSL. Raises ConfigError."""
        context = ssl.create_default_context()
        for name, path in (("cacert", self.ca_cert), ("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE"))):
            if path:
                try:
                    context.load_verify_locations(path)
                except (ssl.SSLError, OSError) as error:
                    raise _unusable(name, path, error) from error
        if self.client_cert is not None:
            try:
                context.load_cert_chain(self.client_cert, self.client_key, password=lambda: "")
            except (ssl.SSLError, OSError) as error:
                raise _unusable("cert", self.client_cert, error) from error
        return context


def trust_options(command: C) -> C:
    """`--cacert`, `--cert`, `--key`, named as in curl; the command takes `trust`."""
    for option in reversed(
        (
            click.option("--cacert", metavar="FILE", help="Authorities of the server's certificate (SSL_CERT_FILE)."),
            click.option("--cert", metavar="FILE", help="Certificate to show to the server."),
            click.option("--key", metavar="FILE", help="Its key, when it is not in the same file."),
        )
    ):
        command = option(command)
    return command


def _unusable(name: str, path: str, error: Exception) -> ConfigError:
    why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return ConfigError(f"{name} {path!r} cannot be used: {why}", reason="tls_invalid", param=name)
