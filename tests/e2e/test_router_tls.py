"""A public listener with TLS, whose certificate is renewed without a change of the configuration."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import httpx

from tests.e2e.router_process import PUBLIC, backend, started_router, two_models
from tests.http.certificates import Authority
from tests.router.upstream.scripted_backend import answers


def serial(url: str, authority: Authority) -> str:
    context = ssl.create_default_context(cafile=str(authority.file))
    with httpx.Client(verify=context, trust_env=False, timeout=20) as client, client.stream("GET", f"{url}/health") as answer:
        certificate = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
    return str(certificate["serialNumber"])


def test_a_listener_speaks_tls_and_takes_up_a_new_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = authority.issue("first"), authority.issue("second")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    shutil.copy(first.certificate, cert)
    shutil.copy(first.key, key)
    with backend(answers()) as one:
        document = two_models(one.endpoint, one.endpoint)
        document["listeners"][0]["tls"] = {"cert_file": str(cert), "key_file": str(key)}
        with started_router(tmp_path / "router", document) as router:
            url = f"https://127.0.0.1:{PUBLIC + router.offset}"
            before = serial(url, authority)
            shutil.copy(second.key, key)
            shutil.copy(second.certificate, cert)
            router.until(lambda: serial(url, authority) != before)
