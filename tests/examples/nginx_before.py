"""Debian's nginx with examples/nginx before servers of a test. Only addresses and folders are changed."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.tiny_server import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
SITE, ENGINES = EXAMPLES / "nginx" / "headway.conf", EXAMPLES / "nginx" / "headway-engines.conf"
# As Debian's nginx.conf, in folders of the test; compression is on for everything.
_MAIN = """daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 2;
events {{ worker_connections 256; }}
http {{ gzip on; gzip_types *; gzip_min_length 0; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  include {folder}/conf.d/*.conf; }}
"""


def program() -> str:
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    assert found is not None, "nginx is one of the packages that the tests need (apt-get install nginx-light)"
    return found


def written(folder: Path, engines: str, port: int) -> list[str]:
    """The command that runs nginx with the two files in `folder`; `engines` is the second one."""
    (folder / "conf.d").mkdir(parents=True)
    site, listens = re.subn(r"listen \d+;", f"listen 127.0.0.1:{port};", SITE.read_text())
    site, logs = re.subn(r"/var/log/nginx", str(folder), site)
    assert (listens, logs) == (1, 1)
    (folder / "conf.d" / SITE.name).write_text(site)
    (folder / "conf.d" / ENGINES.name).write_text(engines)
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
    return [program(), "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def engines_at(*ports: int) -> str:
    """The file of the engines, with their two lines for each port."""
    text = ENGINES.read_text()
    for lines in re.findall(r"(?:^ +server .*;\n)+", text, re.MULTILINE):
        like = re.sub(r":\d+", ":{}", lines.splitlines(keepends=True)[0])
        text = text.replace(lines, "".join(like.format(port) for port in ports))
    return text


@contextmanager
def nginx_before(folder: Path, *ports: int) -> Iterator[str]:
    """Its URL, once it answers; the access log is `folder`/access.log."""
    port = free_port()
    process = subprocess.Popen(written(folder, engines_at(*ports), port), stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(url + "/metrics", trust_env=False)
                break
            except httpx.TransportError:
                assert process.poll() is None, (folder / "error.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield url
    finally:
        process.terminate()
        process.wait(20)
