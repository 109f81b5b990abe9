"""HTTPS: what is refused at the start, who may connect, renewal, and the client commands."""

from __future__ import annotations

import datetime
import json
import logging
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from headway.cli.chat import chat_command
from headway.cli.status import status_command
from headway.cli.stop import stop_command
from headway.cli.wait import wait_command
from headway.errors import ConfigError
from headway.http import tls
from headway.http.tls import days_left, tls_context, warn_of_expiry
from headway.server.settings import ServerSettings
from tests.http.certificates import Authority, Pair, encrypted
from tests.server.api import COMPLETIONS
from tests.server.live import live
from tests.server.process import ServerProcess, server_process


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.issue("server")


def trusting(authority: Authority, client: Pair | None = None) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(authority.file))
    if client is not None:
        context.load_cert_chain(client.both)
    return httpx.Client(verify=context, trust_env=False, timeout=10)


# ---- the start -----------------------------------------------------------------------------------------------------


def refused(**settings: object) -> ConfigError:
    with pytest.raises(ConfigError) as found:
        tls_context(ServerSettings(**{k: str(v) if isinstance(v, Path) else v for k, v in settings.items()}))  # type: ignore[arg-type]
    assert found.value.reason == "tls_invalid"
    return found.value


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls_context(ServerSettings()) is None


@pytest.mark.parametrize(
    "settings",
    [{"ssl_keyfile": "k"}, {"ssl_ca_certs": "c"}, {"ssl_ciphers": "x"}, {"ssl_cert_reqs": 2}, {"enable_ssl_refresh": True}],
)
def test_flags_that_need_a_certificate(settings: dict[str, object]) -> None:
    assert "needs --ssl-certfile" in refused(**settings).message


def test_files_that_are_wrong(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    other = authority.issue("other")
    junk = tmp_path / "junk.pem"
    junk.write_text("not a certificate")
    locked = encrypted(pair.key, tmp_path / "locked.key")
    cert = pair.certificate
    for settings, flag, said in (
        ({"ssl_certfile": tmp_path / "none.pem"}, "ssl_certfile", "cannot be read: No such file"),
        ({"ssl_certfile": tmp_path}, "ssl_certfile", "cannot be read: Is a directory"),
        ({"ssl_certfile": cert, "ssl_keyfile": tmp_path / "none.key"}, "ssl_keyfile", "No such file"),
        ({"ssl_certfile": cert, "ssl_keyfile": other.key}, "ssl_keyfile", "is not the key of the certificate"),
        ({"ssl_certfile": cert, "ssl_keyfile": locked}, "ssl_keyfile", "is encrypted"),
        ({"ssl_certfile": cert, "ssl_keyfile": junk}, "ssl_keyfile", "holds no PEM private key"),
        ({"ssl_certfile": junk, "ssl_keyfile": pair.key}, "ssl_certfile", "holds no PEM certificate"),
        ({"ssl_certfile": cert}, "ssl_certfile", "Give the key with --ssl-keyfile"),
        ({"ssl_certfile": pair.both, "ssl_ca_certs": junk}, "ssl_ca_certs", "holds no PEM certificates"),
        ({"ssl_certfile": pair.both, "ssl_cert_reqs": 2}, "ssl_cert_reqs", "needs --ssl-ca-certs"),
        ({"ssl_certfile": pair.both, "ssl_cert_reqs": 3}, "ssl_cert_reqs", "got 3"),
        ({"ssl_certfile": pair.both, "ssl_ciphers": "NOSUCH"}, "ssl_ciphers", "names no cipher"),
        ({"ssl_certfile": pair.both, "uds": "/tmp/x"}, "ssl_certfile", "cannot be used with --uds"),
    ):
        error = refused(**settings)
        assert (error.param, said in error.message) == (flag, True), error.message


@pytest.mark.parametrize(
    ("days", "said"), [(-3, "expired 3 day(s) ago"), (5, "expires in 5 day(s)"), (400, None)]
)
def test_expiry_is_a_warning(authority: Authority, caplog: pytest.LogCaptureFixture, days: int, said: str | None) -> None:
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days, minutes=1)
    made = authority.issue(f"days{days}", not_after=until)
    settings = ServerSettings(ssl_certfile=str(made.both))
    assert tls_context(settings) is not None
    assert days_left(settings) == pytest.approx(days, abs=0.01)
    warn_of_expiry(settings)
    assert [r.levelname for r in caplog.records] == ([] if said is None else ["WARNING"])
    assert said is None or said in caplog.text


def test_the_process_ends_with_the_reason(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headway.cli.main", "serve", "--port", "0", "--ssl-certfile", str(tmp_path / "none.pem")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "--ssl-certfile" in done.stderr
    assert "cannot be read: No such file" in done.stderr
    assert "Traceback" not in done.stderr


# ---- connections ---------------------------------------------------------------------------------------------------


def test_https_serves_answers_and_streams(authority: Authority, pair: Pair) -> None:
    with live(ssl_certfile=str(pair.certificate), ssl_keyfile=str(pair.key)) as server, trusting(authority) as client:
        assert server.url.startswith("https://")
        assert client.post(server.url + COMPLETIONS, json={"prompt": "x"}).json()["choices"][0]["text"] == "Hello, world"
        assert client.post(server.url + COMPLETIONS, json={"prompt": "x", "stream": True}).text.endswith("[DONE]\n\n")


def test_plain_http_is_explained_in_the_log(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    with live(ssl_certfile=str(pair.both)) as server:
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https:", "http:") + "/health", trust_env=False)
        deadline = time.monotonic() + 10
        while "must begin with https://" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_old_protocols_and_other_ciphers_are_refused(authority: Authority, pair: Pair) -> None:
    with live(ssl_certfile=str(pair.both), ssl_ciphers="ECDHE+AESGCM") as server:
        context = ssl.create_default_context(cafile=str(authority.file))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE+AESGCM")
        with httpx.Client(verify=context, trust_env=False) as client:
            assert client.get(server.url + "/health").status_code == 200
        context = ssl.create_default_context(cafile=str(authority.file))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE+CHACHA20")
        with httpx.Client(verify=context, trust_env=False) as client, pytest.raises(httpx.ConnectError):
            client.get(server.url + "/health")


def test_client_certificates_that_are_required(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger").issue("client")
    known = authority.issue("client")
    settings = {"ssl_certfile": str(pair.both), "ssl_ca_certs": str(authority.file)}
    with live(ssl_cert_reqs=2, **settings) as server:  # type: ignore[arg-type]
        with trusting(authority, known) as client:
            assert client.get(server.url + "/health").status_code == 200
        for shown in (None, stranger):
            with trusting(authority, shown) as client, pytest.raises(httpx.TransportError):
                client.get(server.url + "/health")
    with live(ssl_cert_reqs=1, **settings) as server:  # type: ignore[arg-type]
        with trusting(authority) as client:
            assert client.get(server.url + "/health").status_code == 200
        with trusting(authority, stranger) as client, pytest.raises(httpx.TransportError):
            client.get(server.url + "/health")


def test_a_renewed_certificate_is_used_and_a_wrong_one_is_not(
    authority: Authority, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls, "_RENEWAL_SECONDS", 0.02)
    caplog.set_level(logging.INFO)
    cert, key = tmp_path / "live.pem", tmp_path / "live.key"
    shutil.copy(pair.certificate, cert)
    shutil.copy(pair.key, key)
    renewed = authority.issue("renewed")

    def until(said: str) -> None:
        deadline = time.monotonic() + 10
        while said not in caplog.text:
            assert time.monotonic() < deadline, caplog.text
            time.sleep(0.01)

    with live(ssl_certfile=str(cert), ssl_keyfile=str(key), enable_ssl_refresh=True) as server:

        def shown() -> str:
            host, _, port = server.url.removeprefix("https://").partition(":")
            return ssl.get_server_certificate((host, int(port)))

        assert shown() in pair.certificate.read_text()
        shutil.copy(renewed.certificate, cert)  # the key is still the old one
        until("the renewed certificate is not used, the old one stays")
        assert shown() in pair.certificate.read_text()
        shutil.copy(renewed.key, key)
        until("the renewed certificate is in use")
        assert shown() in renewed.certificate.read_text()


# ---- client commands -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(folder: Path, authority: Authority, pair: Pair) -> Iterator[ServerProcess]:
    flags = ("--ssl-certfile", str(pair.both), "--ssl-ca-certs", str(authority.file), "--ssl-cert-reqs", "2")
    with server_process(folder, "ready", "tiny", *flags) as running:
        running.read_note()
        running.until_logged("Application startup complete")
        yield running


def test_commands_with_certificates(
    server: ServerProcess, folder: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(folder))
    client = authority.issue("person")
    cli = CliRunner()
    own = ["--cert", str(client.certificate), "--key", str(client.key)]
    trusted = ["--cacert", str(authority.file), *own]
    assert server.url.startswith("https://")
    assert cli.invoke(wait_command, ["--timeout", "10", *trusted]).exit_code == 0
    found = json.loads(cli.invoke(status_command, ["--json", *trusted]).stdout)[0]
    assert (found["url"], found["state"]) == (server.url, "ok")
    assert cli.invoke(chat_command, ["-q", "Hi", *trusted]).output.strip() == "Grüße 🙂"

    untrusted = cli.invoke(wait_command, ["--timeout", "30", "--json", *own])
    assert untrusted.exit_code != 0
    assert json.loads(untrusted.stdout)["state"] == "untrusted"
    assert "--cacert" in str(untrusted.exception)
    without = cli.invoke(chat_command, ["-q", "Hi", "--cacert", str(authority.file)])
    assert without.exit_code != 0
    assert cli.invoke(status_command, ["--cacert", str(folder / "none.pem")]).exception is not None

    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    assert cli.invoke(chat_command, ["-q", "Hi", *own]).output.strip() == "Grüße 🙂"
    assert cli.invoke(stop_command, ["--pid", str(server.process.pid)]).exit_code == 0
    assert server.ended() == 0


def test_commands_over_a_unix_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    cli = CliRunner()
    with server_process(tmp_path, "ready", "tiny", "--uds", str(tmp_path / "api.sock")) as server:
        server.read_note()
        assert cli.invoke(wait_command, [server.url]).exit_code == 0
        assert json.loads(cli.invoke(status_command, ["--json"]).stdout)[0]["state"] == "ok"
        assert cli.invoke(chat_command, ["-q", "Hi", "--url", server.url]).output.strip() == "Grüße 🙂"
        assert cli.invoke(stop_command, []).exit_code == 0
        assert server.ended() == 0
