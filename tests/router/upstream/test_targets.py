"""Where a provider model's requests go, and with which key."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.upstream.backend import Backend
from headway.router.upstream.targets import compile_targets
from tests.router.upstream.harness import Sender, document, model, run
from tests.router.upstream.scripted_backend import ScriptedBackend, answers


def backend(ref: dict[str, Any], environment: dict[str, str] | None = None, **fields: Any) -> Backend:
    found = document([{"name": "m", "backend_refs": [ref], **fields}])
    return compile_targets(found, environment or {})["m"].backends[0]


@pytest.mark.parametrize(
    ("ref", "fields", "url"),
    [
        ({"endpoint": "h:8000"}, {}, "http://h:8000/v1/chat/completions"),
        ({"endpoint": "h:8000", "protocol": "https"}, {}, "https://h:8000/v1/chat/completions"),
        ({"endpoint": "h:8000", "chat_path": "/api/chat"}, {}, "http://h:8000/api/chat"),
        ({"base_url": "http://h:8000"}, {}, "http://h:8000/v1/chat/completions"),
        ({"base_url": "https://h/openai/v1/"}, {}, "https://h/openai/v1/chat/completions"),
        ({"base_url": "https://h/deployments/x", "chat_path": "/go"}, {}, "https://h/deployments/x/go"),
        ({"provider": "openai"}, {}, "https://api.openai.com/v1/chat/completions"),
        ({"provider": "perplexity"}, {}, "https://api.perplexity.ai/v1/sonar"),
        ({"provider": "anthropic"}, {}, "https://api.anthropic.com/v1/messages"),
        ({"endpoint": "h:1"}, {"api_format": "anthropic"}, "http://h:1/v1/messages"),
        ({"endpoint": "h:1"}, {"api_format": "responses"}, "http://h:1/v1/responses"),
        (
            {"provider": "azure-openai", "base_url": "https://r.openai.azure.com/openai/deployments/d", "api_version": "2024-10-21"},
            {},
            "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_addresses(ref: dict[str, Any], fields: dict[str, Any], url: str) -> None:
    assert str(backend(ref, **fields).chat) == url


@pytest.mark.parametrize(
    ("ref", "header", "value"),
    [
        ({"endpoint": "h:1", "api_key": "k"}, "authorization", "Bearer k"),
        ({"endpoint": "h:1", "api_key_env": "KEY"}, "authorization", "Bearer from-env"),
        ({"endpoint": "h:1", "api_key": "k", "auth_header": "X-Key"}, "x-key", "k"),
        ({"endpoint": "h:1", "api_key": "k", "auth_header": "X-Key", "auth_prefix": "Token"}, "x-key", "Token k"),
        ({"provider": "azure-openai", "base_url": "https://h/x", "api_key": "k"}, "api-key", "k"),
        ({"provider": "anthropic", "api_key": "k"}, "x-api-key", "k"),
        ({"endpoint": "h:1", "extra_headers": {"X-Team": "a"}}, "x-team", "a"),
    ],
)
def test_keys_and_headers(ref: dict[str, Any], header: str, value: str) -> None:
    assert backend(ref, {"KEY": "from-env"}).headers[header] == value


def test_a_backend_without_a_key_sends_none_and_its_secrets_are_not_shown() -> None:
    assert "authorization" not in backend({"endpoint": "h:1"}).headers
    assert "hush" not in repr(backend({"endpoint": "h:1", "api_key": "hush"}))


def test_a_key_variable_that_is_not_set_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        backend({"endpoint": "h:1", "api_key_env": "NO_SUCH_KEY"})


def test_the_model_is_called_what_its_provider_calls_it() -> None:
    ids = {"provider_model_id": "plain", "external_model_ids": {"openai": "gpt"}}
    assert backend({"endpoint": "h:1"}, **ids).model_id == "plain"
    assert backend({"provider": "openai"}, **ids).model_id == "gpt"
    assert backend({"endpoint": "h:1"}).model_id == "m"


def test_headers_of_the_request_that_go_on_and_those_that_plugins_set() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as found:
            refs = [{"endpoint": found.endpoint, "api_key": "router", "provider": "openai", "extra_headers": {"x-a": "1"}}]
            sender = Sender(document([{"name": "m", "backend_refs": refs}]))
            context = sender.context({"model": "m", "messages": [], "metadata": {"a": "b"}})
            context.headers = {"traceparent": "00-1", "cookie": "c", "authorization": "Bearer client", "x-user-openai-key": "own"}
            context.upstream_headers = {"x-a": None, "x-b": "2"}
            await sender.upstreams.send(context)
            headers = found.asked[0].headers
            assert (headers["traceparent"], headers["authorization"], headers["x-b"]) == ("00-1", "Bearer own", "2")
            assert not {"cookie", "x-a", "x-user-openai-key"} & headers.keys()
            assert "metadata" not in found.asked[0].body
            await sender.close()

    run(work)


def test_embeddings_and_completions_have_their_own_routes() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers({"data": [{"embedding": [0.5]}], "choices": [{"index": 0, "text": "y"}]})]) as found:
            sender = Sender(document([model("m", found.endpoint)]))
            for protocol, body in (("embeddings", {"model": "m", "input": "x"}), ("completions", {"model": "m", "prompt": "x"})):
                context = sender.context(body)
                context.protocol = protocol
                await sender.upstreams.send(context)
            assert [asked.path for asked in found.asked] == ["/v1/embeddings", "/v1/completions"]
            assert found.asked[0].body == {"model": "m", "input": "x"}
            await sender.close()

    run(work)
