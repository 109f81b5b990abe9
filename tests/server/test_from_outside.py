"""What a configuration file switches on, seen from outside of a real process."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from headway.cli.server_client import ServerClient
from headway.cli.wait import wait_until_ready
from tests.server.api import CHAT, COMPLETIONS, error, frames
from tests.server.process import ServerProcess, server_process

CONFIG = """
served-model-name: [first, second]
allowed-origins: ["https://page.test"]
allowed_methods: ["POST"]
allow-credentials: true
root-path: /models
sse-keep-alive-interval: 0.01
enable-request-id-headers: true
return-tokens-as-token-ids: true
enable-force-include-usage: true
fingerprint-mode: none
disable-fastapi-docs: true
max-request-bytes: 1k
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "serve.yaml").write_text(CONFIG)
    flags = ("tiny", "--config", str(folder / "serve.yaml"), "--max-request-bytes", "2k")  # flags win over the file
    with server_process(folder, "core", *flags) as running:
        running.read_note()
        assert wait_until_ready(ServerClient(running.url), 60, lambda state: None).state == "ok"
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30) as made:
        yield made


def test_both_names_are_served_and_the_first_is_told(client: httpx.Client) -> None:
    assert [m["id"] for m in client.get("/v1/models").json()["data"]] == ["first", "second"]
    for name in ("second", "first", None):
        assert client.post(COMPLETIONS, json={"prompt": "x", "model": name}).json()["model"] == "first"
    error(client.post(COMPLETIONS, json={"prompt": "x", "model": "third"}), 404, "model_not_found")
    assert 'model_name="first"' in client.get("/metrics").text


def test_browsers_of_one_origin_may_call(client: httpx.Client) -> None:
    ask = {"origin": "https://page.test", "access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    allowed = client.options(CHAT, headers=ask)
    assert allowed.headers["access-control-allow-origin"] == "https://page.test"
    assert allowed.headers["access-control-allow-credentials"] == "true"
    assert client.options(CHAT, headers=ask | {"access-control-request-method": "DELETE"}).status_code == 400
    assert "access-control-allow-origin" not in client.options(CHAT, headers=ask | {"origin": "https://other.test"}).headers
    answer = client.post(COMPLETIONS, json={"prompt": "x"}, headers={"origin": "https://page.test"})
    assert answer.headers["access-control-allow-origin"] == "https://page.test"


def test_a_proxy_may_cut_the_prefix_or_leave_it(client: httpx.Client) -> None:
    for path in ("/health", "/models/health", "/v1/models", "/models/v1/models"):
        assert client.get(path).status_code == 200
    error(client.get("/models/nope"), 404, "route_not_found")
    error(client.get("/openapi.json"), 404, "route_not_found")


def test_silence_is_filled_and_every_chunk_has_usage(client: httpx.Client) -> None:
    text = client.post(COMPLETIONS, json={"prompt": "slow", "max_tokens": 4, "temperature": 0, "stream": True}).text
    assert text.count(": keep-alive\n\n") >= 4  # a step takes 50 ms
    chunks = frames(text)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 2, 3, 4, 4]
    assert chunks[-1]["choices"] == []
    assert all("system_fingerprint" not in chunk for chunk in chunks)


def test_ids_of_requests_and_of_tokens(client: httpx.Client) -> None:
    answer = client.post(COMPLETIONS, json={"prompt": "x", "logprobs": 1, "max_tokens": 1}, headers={"x-request-id": "mine-7"})
    assert (answer.headers["x-request-id"], answer.json()["id"]) == ("mine-7", "cmpl-mine-7")
    assert answer.json()["choices"][0]["logprobs"]["tokens"][0].startswith("token_id:")
    assert client.get("/health").headers["x-request-id"]


def test_flags_win_over_the_file(client: httpx.Client) -> None:
    assert client.post(COMPLETIONS, json={"prompt": "x" * 1500, "max_tokens": 1}).status_code == 400  # longer than the context
    error(client.post(COMPLETIONS, json={"prompt": "x" * 3000}), 413, "body_too_large")
