"""TLS of the listening socket: the context, made from files that are checked one by one, and their renewal."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from headway.errors import ConfigError
from headway.http.settings import HttpSettings

_log = logging.getLogger(__name__)
_NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python's ssl does not name
_DAY = 86400
_SOON_DAYS = 14
_RENEWAL_SECONDS = 2.0
_HTTP_HINT = "a client spoke plain HTTP to this TLS port: its address must begin with https://"


def tls_context(settings: HttpSettings) -> ssl.SSLContext | None:
    """None without `--ssl-certfile`. Raises ConfigError, reason `tls_invalid`, naming the flag and what is wrong with it."""
    if settings.ssl_certfile is None:
        for name in ("ssl_keyfile", "ssl_ca_certs", "ssl_ciphers"):
            if getattr(settings, name) is not None:
                raise _invalid(name, "needs --ssl-certfile", "Give the certificate as well.")
        if settings.ssl_cert_reqs or settings.enable_ssl_refresh:
            raise _invalid("ssl_cert_reqs" if settings.ssl_cert_reqs else "enable_ssl_refresh", "needs --ssl-certfile")
        return None
    if settings.uds is not None:
        raise _invalid("ssl_certfile", "cannot be used with --uds", "A Unix socket is private to this user as it is.")
    return _new_context(settings)


def _new_context(settings: HttpSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslobject_class = _HintingObject
    load_chain(context, settings)
    if settings.ssl_cert_reqs not in (0, 1, 2):
        raise _invalid("ssl_cert_reqs", f"must be 0 (none), 1 (optional) or 2 (required), got {settings.ssl_cert_reqs}")
    if settings.ssl_ca_certs is not None:
        _readable("ssl_ca_certs", settings.ssl_ca_certs)
        try:
            context.load_verify_locations(settings.ssl_ca_certs)
        except ssl.SSLError as error:
            raise _invalid("ssl_ca_certs", f"{settings.ssl_ca_certs!r} holds no PEM certificates ({error.reason})") from error
    elif settings.ssl_cert_reqs:
        raise _invalid("ssl_cert_reqs", "needs --ssl-ca-certs, the authorities whose client certificates are taken")
    context.verify_mode = ssl.VerifyMode(settings.ssl_cert_reqs)
    if settings.ssl_ciphers is not None:
        try:
            context.set_ciphers(settings.ssl_ciphers)
        except ssl.SSLError as error:
            raise _invalid("ssl_ciphers", f"{settings.ssl_ciphers[:200]!r} names no cipher that OpenSSL has") from error
    return context


def load_chain(context: ssl.SSLContext, settings: HttpSettings) -> None:
    """Put certificate and key into `context`; new connections use them. Raises ConfigError."""
    certificate, key = settings.ssl_certfile, settings.ssl_keyfile
    assert certificate is not None
    _readable("ssl_certfile", certificate)
    if key is not None:
        _readable("ssl_keyfile", key)
    asked = False

    def password() -> str:
        nonlocal asked
        asked = True
        return ""

    try:
        context.load_cert_chain(certificate, key, password)
    except (ssl.SSLError, ValueError, OSError) as error:
        _explain(error, asked, certificate, key)


def _explain(error: Exception, encrypted: bool, certificate: str, key: str | None) -> NoReturn:
    name = "ssl_certfile" if key is None else "ssl_keyfile"
    place = certificate if key is None else key
    reason = getattr(error, "reason", None) or str(error)
    if encrypted:
        fix = f"Decrypt it, readable for this user only: openssl pkey -in {os.path.basename(place)} -out plain.pem."
        raise _invalid(name, f"{place!r} is encrypted and a server has nobody to ask for the password", fix) from error
    if reason == "KEY_VALUES_MISMATCH":
        raise _invalid(name, f"{place!r} is not the key of the certificate in {certificate!r}") from error
    if not _has_pem(certificate, "CERTIFICATE"):
        raise _invalid("ssl_certfile", f"{certificate!r} holds no PEM certificate") from error
    if not _has_pem(place, "PRIVATE KEY"):
        hint = "Give the key with --ssl-keyfile." if key is None else None
        raise _invalid(name, f"{place!r} holds no PEM private key", hint) from error
    raise _invalid(name, f"{place!r} with certificate {certificate!r} cannot be used ({reason})") from error


def _readable(name: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise _invalid(name, f"{path!r} cannot be read: {error.strerror}") from error


def _has_pem(path: str, kind: str) -> bool:
    with open(path, "rb") as file:
        return f"{kind}-----".encode() in file.read(1 << 20)


def _invalid(name: str, what: str, fix: str | None = None) -> ConfigError:
    return ConfigError(f"--{name.replace('_', '-')} {what}", reason="tls_invalid", param=name, fix=fix)


def warn_of_expiry(settings: HttpSettings) -> None:
    """A certificate that is over, or soon will be, is no error: clients that pin it may not mind."""
    if settings.ssl_certfile is None:
        return
    days = days_left(settings)
    if days is None:
        _log.warning("--ssl-certfile: the time for which the certificate is valid cannot be read")
    elif days < 0:
        _log.warning("--ssl-certfile: the certificate expired %.0f day(s) ago; clients will refuse it", -days)
    elif days < _SOON_DAYS:
        _log.warning("--ssl-certfile: the certificate expires in %.0f day(s)", days)


def days_left(settings: HttpSettings) -> float | None:
    """Days until the certificate expires, negative afterwards; None if it cannot be found out.

    The standard library shows the fields of a certificate only to a peer that verified it: this shakes hands with itself,
    trusting exactly this certificate at any time.
    """
    assert settings.ssl_certfile is not None
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_chain(server, settings)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    client.load_verify_locations(settings.ssl_certfile)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [server.wrap_bio(to_server, to_client, server_side=True), client.wrap_bio(to_client, to_server)]
    try:
        for _ in range(4):
            for side in reversed(sides):
                _shake(side)
        found: Any = (sides[1].getpeercert() or {}).get("notAfter")
    except (ssl.SSLError, ValueError):
        return None
    return None if found is None else (ssl.cert_time_to_seconds(found) - time.time()) / _DAY


def _shake(side: ssl.SSLObject) -> None:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return


class _HintingObject(ssl.SSLObject):
    """A handshake that says so when the client did not speak TLS at all."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason in ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST"):
                _log.warning(_HTTP_HINT)
            raise


async def refresh(context: ssl.SSLContext, settings: HttpSettings) -> None:
    """Load the files again whenever they change, until cancelled. What cannot be used is logged and the old stays."""
    files = [path for path in (settings.ssl_certfile, settings.ssl_keyfile) if path is not None]
    seen = _versions(files)
    while True:
        await asyncio.sleep(_RENEWAL_SECONDS)
        found = _versions(files)
        if found == seen or None in found:  # being replaced
            continue
        seen = found
        try:
            load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), settings)  # a half-written pair must not touch the live one
            load_chain(context, settings)
        except ConfigError as error:
            _log.error("the renewed certificate is not used, the old one stays: %s", error.message)
            continue
        _log.info("the renewed certificate is in use")
        warn_of_expiry(settings)


def _versions(files: Sequence[str]) -> list[tuple[int, int, int] | None]:
    found: list[tuple[int, int, int] | None] = []
    for path in files:
        try:
            stat = os.stat(path)
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found
