"""Redis over TLS: an authority of the test's own, a real server, the response cache and the store of responses in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headway.router.config.document.stores import RedisConnection, RedisTLS
from headway.router.stores.redis_link import RedisLink
from tests.http.certificates import Authority
from tests.router.listener.live_front import AUTO, LiveFront, decision, run
from tests.router.stores.redis_process import ServerTLS, redis_server
from tests.router.upstream.scripted_backend import ScriptedBackend, answers

CACHE = {"type": "response_cache", "configuration": {"enabled": True, "mode": "exact", "scope": "global"}}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def server(authority: Authority, **fields: Any) -> ServerTLS:
    pair = authority.issue("server")
    return ServerTLS(authority.file, pair.certificate, pair.key, **fields)


def trouble_with(port: int, **tls: Any) -> str | None:
    """What a link says after one command."""

    async def work() -> str | None:
        link = RedisLink(RedisConnection(host="127.0.0.1", port=port, tls=RedisTLS(**tls)))

        async def ask(redis: Any) -> bool:
            return bool(await redis.ping())

        answered = await link.run(ask, False)
        await link.close()
        assert answered == (link.trouble is None)
        return link.trouble

    return asyncio.run(work())


def test_the_response_cache_and_the_store_of_responses(tmp_path: Path, authority: Authority) -> None:
    with redis_server(server(authority)) as (port, process):
        cache = {"backend_type": "redis", "redis": {"connection": {"host": "127.0.0.1", "port": port, "tls": {"enabled": True, "ca_file": str(authority.file)}}}}
        store = {"store_backend": "redis", "redis": {"address": f"127.0.0.1:{port}", "tls_enabled": True, "tls_ca_path": str(authority.file)}}
        settings = {"global": {"stores": {"response_cache": cache}, "services": {"response_api": store}}, "routing": {"decisions": [decision("d", None, [CACHE])]}}

        async def work() -> None:
            async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path / "a", **settings) as front:
                hits = [(await front.chat(model=AUTO)).headers["x-vsr-cache-hit"] for _ in range(2)]
                assert (hits, len(backend.asked)) == (["false", "true"], 1)
                made = await front.openai().responses.create(model="m", input="hi")
                assert (await front.openai().responses.retrieve(made.id)).output_text == "hello"
                process.kill()
                process.wait()
                assert (await front.chat(model=AUTO)).headers["x-vsr-cache-hit"] == "false"
                await front.services.responses.close()
                await front.services.response_caches.close()

        run(work)


def test_who_is_not_vouched_for_is_not_talked_to(tmp_path: Path, authority: Authority) -> None:
    other = Authority(tmp_path, "other")
    with redis_server(server(authority)) as (port, _):
        assert trouble_with(port, enabled=True, ca_file=str(authority.file)) is None
        assert trouble_with(port, enabled=True, ca_file=str(other.file)) is not None
        assert trouble_with(port, enabled=False) is not None


def test_a_server_that_wants_certificates_gets_one(authority: Authority) -> None:
    mine = authority.issue("client")
    with redis_server(server(authority, demands=True, client=(mine.certificate, mine.key))) as (port, _):
        files = {"enabled": True, "ca_file": str(authority.file)}
        assert trouble_with(port, **files) is not None
        assert trouble_with(port, **files, cert_file=str(mine.certificate), key_file=str(mine.key)) is None
