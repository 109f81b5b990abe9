"""Health, models, metrics and the rest around generation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway import __version__
from headway.errors import QueueFullError, StepError
from headway.server.routes import NOT_BUILT_ROUTES
from tests.server.api import CHAT, COMPLETIONS, USER, Api, error, ok
from tests.server.scripted_engine import ScriptedEngine, Status

Make = Callable[..., Api]


@pytest.mark.parametrize(("method", "path"), [("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")])
def test_health(api: Api, method: str, path: str) -> None:
    assert ok(api.call(method, path)) == {"status": "ok"}
    api.engine.status = Status("loading", 0.25)
    response = api.call(method, path)
    assert (response.status_code, response.json()) == (503, {"status": "loading", "stage": "loading", "progress": 0.25})
    api.engine.status = Status("dead", 1.0, "out of memory in /home/someone/x.py")
    response = api.call(method, path)
    assert (response.status_code, response.json()) == (503, {"status": "dead", "reason": "out of memory in x.py"})


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("POST", COMPLETIONS), ("POST", CHAT), ("POST", "/tokenize"), ("POST", "/detokenize")])
def test_while_loading_the_api_says_when_to_come_back(api: Api, method: str, path: str) -> None:
    api.engine.status = Status("warming", 0.5)
    response = api.call(method, path, json={"prompt": "x", "messages": USER, "tokens": [1]} if method == "POST" else None)
    assert "stage warming, 50%" in error(response, 503, "loading")["message"]
    assert int(response.headers["retry-after"]) > 0
    for open_path in ("/version", "/metrics", "/load", "/openapi.json"):
        assert api.get(open_path).status_code == 200


def test_a_dead_engine_is_named(api: Api) -> None:
    api.engine.status = Status("dead", 1.0, "out of memory in /home/someone/x.py")
    found = error(api.post(COMPLETIONS, {"prompt": "x"}), 500, "engine_dead")
    assert found["message"] == "The engine is dead: out of memory in x.py"


def test_version(api: Api) -> None:
    assert ok(api.get("/version")) == {"version": __version__}


def test_models(make_api: Make) -> None:
    body = ok(make_api(ScriptedEngine(served_model_name=("one", "two"))).get("/v1/models"))
    assert body["object"] == "list"
    assert [(m["id"], m["object"], m["root"], m["max_model_len"]) for m in body["data"]] == [
        ("one", "model", "tiny", 200),
        ("two", "model", "tiny", 200),
    ]
    assert isinstance(body["data"][0]["created"], int)
    assert len(body["data"][0]["permission"]) == 1


def test_unknown_routes_and_wrong_methods(api: Api) -> None:
    assert error(api.get("/v1/nope"), 404, "route_not_found")["message"] == "There is no route GET /v1/nope"
    response = api.get(COMPLETIONS)
    error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("path", sorted(NOT_BUILT_ROUTES))
def test_routes_to_come(api: Api, path: str) -> None:
    assert path in error(api.post(path, {}), 501, "route_not_built")["message"]


def test_bodies_must_be_json(api: Api) -> None:
    for headers in ({"content-type": "text/plain"}, {}, {"content-type": "multipart/form-data"}):
        error(api.call("POST", COMPLETIONS, content=b'{"prompt": "x"}', headers=headers), 400, "media_type_unsupported")
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/ld+json"):
        assert api.call("POST", COMPLETIONS, content=b'{"prompt": "x"}', headers={"content-type": kind}).status_code == 200


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'"x"', b"null"])
@pytest.mark.parametrize("path", [COMPLETIONS, CHAT, "/tokenize", "/detokenize"])
def test_broken_bodies(api: Api, path: str, raw: bytes) -> None:
    error(api.call("POST", path, content=raw, headers={"content-type": "application/json"}), 400, "body_invalid")


def test_body_limits(make_api: Make) -> None:
    api = make_api(max_request_bytes=1000, max_json_depth=10)
    assert api.post(COMPLETIONS, {"prompt": "x", "pad": "y" * 900}).status_code == 200
    response = api.post(COMPLETIONS, {"prompt": "x", "pad": "y" * 1000})
    error(response, 413, "body_too_large")
    assert response.headers["connection"] == "close"
    error(api.call("POST", COMPLETIONS, content=b'{"a":' + b"[" * 10 + b"]" * 10 + b"}", headers={"content-type": "application/json"}), 400, "body_too_deep")


def test_a_body_without_length_is_cut_off_at_the_limit(make_api: Make) -> None:
    taken = 0

    async def body():  # type: ignore[no-untyped-def]
        nonlocal taken
        for _ in range(1000):
            taken += 100
            yield b"x" * 100

    api = make_api(max_request_bytes=1000)
    error(api.call("POST", COMPLETIONS, content=body(), headers={"content-type": "application/json"}), 413, "body_too_large")
    assert taken <= 1200


def test_ids_of_requests(make_api: Make) -> None:
    api = make_api()
    for path, prefix in ((COMPLETIONS, "cmpl-"), (CHAT, "chatcmpl-")):
        body = {"prompt": "x", "messages": USER}
        assert api.post(path, body, headers={"X-Request-Id": "mine-1"}).json()["id"] == prefix + "mine-1"
        assert api.post(path, body | {"request_id": "body-1"}).json()["id"] == prefix + "body-1"
        odd = api.post(path, body, headers={"X-Request-Id": "a b\tc"}).json()["id"]
        assert odd.startswith(prefix)
        assert " " not in odd
    seen = [other["id"] for _, _, other in api.engine.seen]
    assert len(set(seen)) == len(seen)  # though clients repeat theirs
    assert "x-request-id" not in api.post(COMPLETIONS, {"prompt": "x"}).headers


def test_request_id_headers(make_api: Make) -> None:
    api = make_api(enable_request_id_headers=True)
    assert api.get("/health", headers={"X-Request-Id": "mine"}).headers["x-request-id"] == "mine"
    response = api.post(COMPLETIONS, {"prompt": "x"})
    assert response.json()["id"] == "cmpl-" + response.headers["x-request-id"]


def test_a_step_that_fails_is_500_and_the_next_request_works(api: Api) -> None:
    api.engine.fail = StepError("the forward pass broke at 0x7f0000001234")
    for stream in (False, True):
        assert "0x7f" not in error(api.post(COMPLETIONS, {"prompt": "x", "stream": stream}), 500, "step_failed")["message"]
    api.engine.fail = None
    assert api.complete()["choices"]


def test_an_error_inside_a_stream_is_a_frame_before_done(api: Api) -> None:
    api.engine.fail, api.engine.fail_after = StepError("broke"), 3
    chunks = api.stream(COMPLETIONS)
    assert [c["choices"][0]["text"] for c in chunks[:-1]] == ["H", "e", "l"]
    assert chunks[-1]["error"]["reason"] == "step_failed"


def test_a_full_queue_is_503_and_counted(api: Api) -> None:
    api.engine.fail = QueueFullError("full", param="max_num_queued_reqs")
    for stream in (False, True):
        response = api.post(COMPLETIONS, {"prompt": "x", "stream": stream})
        error(response, 503, "queue_full")
        assert response.headers["retry-after"] == "1"
    assert 'vllm:admission_rejections_total{engine="0",model_name="tiny",reason="max_num_queued_reqs"} 2.0' in api.get("/metrics").text


def test_one_failing_prompt_ends_its_neighbours(api: Api) -> None:
    error(api.post(COMPLETIONS, {"prompt": [[1], [999], [2]]}), 400, param="prompt")
    assert not api.engine.active


def test_defects_are_500_without_details(api: Api) -> None:
    api.engine.fail = ValueError("secret")  # type: ignore[assignment]
    assert "secret" not in api.post(COMPLETIONS, {"prompt": "x"}).text
    assert error(api.post(COMPLETIONS, {"prompt": "x"}), 500)["reason"] == "internal_error"
    api.engine.fail_after = 2
    assert api.stream(COMPLETIONS)[-1]["error"]["reason"] == "internal_error"


def test_metrics_count_http_requests_by_route(api: Api) -> None:
    api.complete()
    api.get("/v1/nope/1")
    api.get("/v1/nope/2")
    api.get("/health")
    response = api.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 1.0' in response.text
    assert 'http_requests_total{handler="none",method="GET",status="4xx"} 2.0' in response.text
    assert "nope" not in response.text
    assert "/health" not in response.text


def test_fingerprints(make_api: Make) -> None:
    full, digest, none = (make_api(fingerprint_mode=mode).complete()["system_fingerprint"] for mode in ("full", "hash", "none"))
    assert full == f"headway-{__version__}-{digest}"
    assert none is None
    other = make_api(ScriptedEngine(dtype="float32"), fingerprint_mode="hash").complete()["system_fingerprint"]
    assert other != digest


def test_requests_are_logged_without_their_texts(make_api: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    make_api().complete(prompt="private", stop="secret")
    assert "Received request" not in caplog.text
    make_api(enable_log_requests=True).complete(prompt="private", stop="secret", temperature=0.5)
    assert "1 prompt(s) of 7 tokens, n=1, max_tokens=16, temperature=0.5" in caplog.text
    assert "private" not in caplog.text
    assert "secret" not in caplog.text


def test_cors_only_for_listed_origins(make_api: Make) -> None:
    headers = {"Origin": "http://page.test", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in make_api().call("OPTIONS", COMPLETIONS, headers=headers).headers
    api = make_api(allowed_origins=("http://page.test",), api_key=("k",))
    assert api.call("OPTIONS", COMPLETIONS, headers=headers).headers["access-control-allow-origin"] == "http://page.test"
    other = api.call("OPTIONS", COMPLETIONS, headers=headers | {"Origin": "http://other.test"})
    assert "access-control-allow-origin" not in other.headers


def test_openapi_describes_bodies_and_answers(make_api: Make) -> None:
    schema = ok(make_api().get("/openapi.json"))
    for path, body in ((COMPLETIONS, "CompletionBody"), (CHAT, "ChatBody")):
        operation = schema["paths"][path]["post"]
        assert operation["requestBody"]["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{body}"}
        assert operation["responses"].keys() == {"200", "400", "401", "404", "408", "413", "500", "503"}
        assert operation["responses"]["200"]["content"].keys() == {"application/json", "text/event-stream"}
        assert operation["responses"]["400"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorBody"}
    assert schema["paths"]["/health"]["get"]["responses"].keys() == {"200", "503"}
    assert schema["components"]["schemas"]["CompletionBody"]["properties"]["temperature"]["anyOf"][0]["maximum"] == 2
    ids = [o["operationId"] for p in schema["paths"].values() for o in p.values()]
    assert len(set(ids)) == len(ids)
    assert "$defs" not in str(schema)
    assert make_api(disable_fastapi_docs=True).get("/openapi.json").status_code == 404
