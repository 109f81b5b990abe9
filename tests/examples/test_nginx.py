"""examples/nginx, run by Debian's nginx before servers that answer, refuse and die."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from headway.http.settings import HttpSettings
from headway.server.flags import SERVER_FLAGS
from tests.e2e.tiny_server import free_port
from tests.examples.nginx_before import ENGINES, EXAMPLES, SITE, engines_at, nginx_before, program, written
from tests.examples.scripted_engine import FIRST, LAST, Manner, scripted_engine

TEXT = SITE.read_text()


def post(url: str, **headers: str) -> httpx.Response:
    return httpx.post(url + "/v1/completions", json={"prompt": "x"}, headers=headers, trust_env=False, timeout=60)


def setting(text: str, name: str) -> str:
    found = re.search(rf"^ *{name} (\S+);", text, re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_nginx_accepts_the_files_as_they_are(tmp_path: Path) -> None:
    command = written(tmp_path, ENGINES.read_text(), free_port())
    done = subprocess.run([program(), "-t", *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_limits_and_times_are_those_of_the_engine() -> None:
    flags = {flag.name: flag.default for flag in SERVER_FLAGS}
    assert int(setting(TEXT, "client_max_body_size").removesuffix("m")) << 20 == flags["max-request-bytes"]
    assert setting(TEXT, "proxy_read_timeout") == "300s"
    assert int(setting(ENGINES.read_text(), "keepalive_timeout").removesuffix("s")) < HttpSettings().timeout_keep_alive


def test_the_engines_of_the_fleet_are_set_up_alike() -> None:
    def told(text: str) -> list[str]:
        return [line.strip() for line in re.sub(r"#.*|127\.0\.0\.1:\d+|engine-.:\d+", "", text).splitlines() if line.strip()]

    assert told((EXAMPLES / "compose" / "nginx-engines.conf").read_text()) == told(ENGINES.read_text())


@pytest.mark.parametrize("manner", ["stream", "stream until closed"])
def test_each_part_of_a_stream_comes_when_it_was_sent(tmp_path: Path, manner: Manner) -> None:
    """The engine sends the rest only after the client has the beginning: a proxy that buffers or compresses would wait for ever."""
    with (
        scripted_engine(manner) as engine,
        nginx_before(tmp_path / "nginx", engine.port) as url,
        httpx.stream("POST", url + "/v1/completions", json={"stream": True}, trust_env=False, timeout=60) as answer,
    ):
        parts = answer.iter_raw()
        assert next(parts) == FIRST
        engine.go_on.set()
        assert b"".join(parts) == LAST


def test_request_ids_are_passed_on_and_come_back(tmp_path: Path) -> None:
    with scripted_engine("answer") as engine, nginx_before(tmp_path / "nginx", engine.port) as url:
        own = post(url, **{"X-Request-Id": "client-7.a"})
        made = post(url)
        strange = post(url, **{"X-Request-Id": "two words"})
    ids = [each.headers.get_list("x-request-id") for each in (own, made, strange)]
    assert ids[0] == ["client-7.a"]
    assert all(re.fullmatch(r"[0-9a-f]{32}", each[0]) and len(each) == 1 for each in ids[1:])
    assert [seen[2] for seen in engine.seen] == [each[0] for each in ids]
    log = (tmp_path / "nginx" / "access.log").read_text()
    assert all(each[0] in log for each in ids)
    assert "two words" not in log


def test_an_engine_that_is_not_there_costs_no_request(tmp_path: Path) -> None:
    with socket.socket() as held, scripted_engine("answer") as engine:
        held.bind(("127.0.0.1", 0))  # and does not listen
        with nginx_before(tmp_path / "nginx", held.getsockname()[1], engine.port) as url:
            assert {post(url).status_code for _ in range(6)} == {200}
            assert httpx.get(url + "/health", trust_env=False).status_code == 200


def test_a_refused_request_goes_to_another_engine_which_gets_it_once(tmp_path: Path) -> None:
    with scripted_engine("refuse") as full, scripted_engine("answer") as other, nginx_before(tmp_path / "nginx", full.port, other.port) as url:
        assert {post(url).status_code for _ in range(6)} == {200}
        assert httpx.get(url + "/health", trust_env=False).status_code == 200
    assert full.count > 0
    assert other.count == 7


def test_when_all_refuse_the_client_hears_them_and_the_first_that_can_answers(tmp_path: Path) -> None:
    with scripted_engine("refuse") as one, scripted_engine("refuse") as two, nginx_before(tmp_path / "nginx", one.port, two.port) as url:
        answers = [post(url) for _ in range(6)]
        two.manner = "answer"
        assert any(post(url).status_code == 200 for _ in range(4))
    assert {(each.status_code, each.json()["error"]["reason"]) for each in answers} == {(503, "queue_full")}


def test_a_request_that_an_engine_took_is_never_sent_again(tmp_path: Path) -> None:
    """Whoever dies with a request may have done the work: the client is told, in the form of the engine's errors."""
    with scripted_engine("die") as one, scripted_engine("die") as two, nginx_before(tmp_path / "nginx", one.port, two.port) as url:
        answer = post(url)
        assert one.count + two.count == 1
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["reason"]) == (502, 502, "no_engine")
    assert answer.headers["x-request-id"]


def test_metrics_of_whichever_engine_are_not_shown(tmp_path: Path) -> None:
    with scripted_engine("answer") as engine, nginx_before(tmp_path / "nginx", engine.port) as url:
        assert httpx.get(url + "/metrics", trust_env=False).status_code == 404
    assert engine.count == 0


def test_every_engine_has_both_lines() -> None:
    lines = re.findall(r"^ +server (\S+) (.*);$", ENGINES.read_text(), re.MULTILINE)
    first, last = ([address for address, words in lines if words.endswith(end)] for end in ("fail_timeout=5s", "backup"))
    assert first == last
    assert engines_at(1, 2, 3).count(":3 ") == 2
