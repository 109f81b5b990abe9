"""Between client and server: a proxy that buffers, a server that listens on loopback only, a caller without an answer."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.doctor.live.diagnosed import doctor, first, fixes
from tests.e2e.tiny_server import free_port, tiny_server
from tests.shim.environments import ROOT

_NGINX = """daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {upstream}; proxy_http_version 1.1; {extra} }} }} }}
"""


@contextmanager
def nginx(folder: Path, upstream: str, extra: str = "") -> Iterator[str]:
    """Debian's nginx in front of a server; its default is to buffer answers."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    assert program is not None, "nginx is one of the packages that the tests need (apt-get install nginx-light)"
    port, config = free_port(), folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, port=port, upstream=upstream, extra=extra))
    process = subprocess.Popen([program, "-c", str(config), "-p", str(folder)], stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                httpx.get(url + "/health", trust_env=False)
                break
            except httpx.TransportError:
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait(10)


# More text than a proxy's buffers do not hold back; the header of Headway that forbids buffering is taken off, as servers send none.
_BUFFERS = "proxy_ignore_headers X-Accel-Buffering; proxy_buffering on; proxy_buffers 64 32k; proxy_buffer_size 32k; proxy_busy_buffers_size 64k; gzip on; gzip_min_length 0; gzip_types text/event-stream;"


def test_a_proxy_that_buffers(tmp_path: Path) -> None:
    with tiny_server(tmp_path) as served, nginx(tmp_path, served.url, _BUFFERS) as proxy:
        finding = first(doctor("serve", proxy, "--direct", served.url, "--seconds", "2"))
        assert finding["rule"] == "F5"
        assert "proxy_buffering off" in fixes(finding)


@pytest.mark.long
def test_a_proxy_that_passes_on_what_it_gets_is_healthy(tmp_path: Path) -> None:
    with tiny_server(tmp_path) as served, nginx(tmp_path, served.url, "proxy_buffering off;") as proxy:
        report = doctor("serve", proxy, "--direct", served.url, "--seconds", "2")
    assert not [finding for finding in report["findings"] if finding["confidence"] > 0.5], report["findings"]


@pytest.mark.long
def test_a_proxy_whose_limit_is_shorter_than_the_answer(tmp_path: Path) -> None:
    """504 from nginx while the server goes on computing."""
    from tests.doctor.live.slow_server import slow_server

    with slow_server(seconds=30) as server, nginx(tmp_path, server, "proxy_read_timeout 1s;") as proxy:
        finding = first(doctor("serve", proxy, "--seconds", "2"))
    assert finding["rule"] == "N8"


def test_nothing_listens(tmp_path: Path) -> None:
    finding = first(doctor("net", f"127.0.0.1:{free_port()}"))
    assert finding["rule"] == "N1"


_FROM_ANOTHER_HOST = """
import json, os, subprocess, sys, time
port, folder = sys.argv[1], sys.argv[2]
run = lambda *words: subprocess.run(words, check=True)
run("ip", "link", "set", "lo", "up")
other = subprocess.Popen(["unshare", "-n", "sleep", "300"])
time.sleep(0.3)
run("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(other.pid))
run("ip", "addr", "add", "10.77.0.1/24", "dev", "here"); run("ip", "link", "set", "here", "up")
inside = ["nsenter", "-t", str(other.pid), "-n"]
run(*inside, "ip", "addr", "add", "10.77.0.2/24", "dev", "there"); run(*inside, "ip", "link", "set", "there", "up")
server = subprocess.Popen([sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
time.sleep(1)
try:
    for prefix in (inside, []):
        done = subprocess.run([*prefix, sys.executable, "-m", "headway.cli.main", "doctor", "net", f"10.77.0.1:{port}", "--json"], capture_output=True)
        print(done.stdout.decode().replace("\\n", " "))
        sys.stderr.write(done.stderr.decode())
finally:
    server.kill(); other.kill()
"""


def test_a_loopback_bind_seen_from_another_host(tmp_path: Path) -> None:
    """Two network namespaces stand for two hosts. Seen from the other one the connection is refused; on the server's own
    host the doctor also sees which address is bound."""
    import json

    words = ["unshare", "-rn", sys.executable, "-c", _FROM_ANOTHER_HOST, str(free_port()), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(ROOT / "src")}, check=False)
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(reports) == 2, done.stderr
    outside, own = (first(report) for report in reports)
    assert outside["rule"] == own["rule"] == "N1"
    assert "--host" in fixes(outside)
    assert "127.0.0.1" in own["cause"]
    assert "--host 0.0.0.0" in fixes(own)


@pytest.mark.parametrize("scheme", ["http to https", "https to http"])
def test_tls_on_one_side_only(tmp_path: Path, scheme: str) -> None:
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    issued.private_key_pem.write_to_path(key)
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    if scheme == "https to http":
        with tiny_server(tmp_path) as served:
            finding = first(doctor("serve", served.url.replace("http://", "https://"), "--seconds", "1", "--insecure"))
    else:
        from tests.doctor.live.tls_server import tls_server

        with tls_server(tmp_path, key, chain) as port:
            finding = first(doctor("serve", f"http://127.0.0.1:{port}", "--seconds", "1"))
    assert finding["rule"] == "N17"
