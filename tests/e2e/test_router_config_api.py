"""The configuration of a running router over HTTP, and by the command lines that use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.router_process import RunningRouter, backend, started_router, two_models
from tests.router.upstream.scripted_backend import answers

ROOT = "/api/v1/config"


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    with backend(answers()) as one:
        document = two_models(one.endpoint, one.endpoint)
        document["providers"]["models"][0]["backend_refs"][0]["api_key"] = "secret-of-small"
        document["providers"]["models"][1]["backend_refs"][0]["api_key"] = "${KEY_OF_LARGE}"
        with started_router(tmp_path, document, KEY_OF_LARGE="secret-of-large") as found:
            yield found


def put(router: RunningRouter, text: str, etag: str | None, method: str = "PUT") -> Any:
    headers = {"If-Match": etag} if etag is not None else {}
    return router.client.request(method, router.management + ROOT, json={"yaml": text}, headers=headers)


def changed(router: RunningRouter, **parts: Any) -> str:
    document = yaml.safe_load(router.config.read_text())
    document["routing"]["signals"]["keywords"][0].update(parts)
    return yaml.safe_dump(document, sort_keys=False)


def decision(router: RunningRouter, text: str) -> str:
    return str(router.preview(text).json()["decision_result"]["decision_name"])


def test_a_change_needs_the_etag_and_is_compared_and_swapped(router: RunningRouter) -> None:
    before = router.get(ROOT)
    etag = before.headers["etag"]
    text = changed(router, keywords=["rust"])
    assert put(router, text, None).status_code == 428
    stale = put(router, text, '"0000"')
    assert (stale.status_code, stale.json()["error"]["code"]) == (412, "PRECONDITION_FAILED")
    assert decision(router, "python") == "code"
    done = put(router, text, etag)
    assert done.status_code == 200, done.text
    assert done.headers["etag"] != etag
    assert (decision(router, "rust"), decision(router, "python")) == ("code", "")
    assert router.config.read_text() == text
    assert router.chat("rust").headers["x-vsr-config-version"] == done.json()["version"]


def test_secrets_are_not_shown_and_their_mask_is_not_taken(router: RunningRouter) -> None:
    shown = router.get(ROOT)
    assert "secret-of" not in shown.text
    refs = [model["backend_refs"][0]["api_key"] for model in shown.json()["providers"]["models"]]
    assert refs == ["***", "${KEY_OF_LARGE}"]
    back = put(router, yaml.safe_dump(shown.json()), shown.headers["etag"])
    assert (back.status_code, back.json()["error"]["code"]) == (400, "CONFIG_VALIDATION_ERROR")
    assert "secret-of-small" in router.config.read_text()
    assert "secret-of-large" not in router.client.post(f"{router.management}{ROOT}/validate", json={"yaml": router.config.read_text()}).text


def test_a_merge_changes_a_part_and_keeps_comments(router: RunningRouter) -> None:
    router.config.write_text("# mine\n" + router.config.read_text())
    router.until(lambda: router.get(f"{ROOT}/hash").json()["source_config_hash"] == router.get(ROOT).headers["etag"].strip('"'))
    done = put(router, "providers: {defaults: {model: large}}", router.get(ROOT).headers["etag"], "PATCH")
    assert done.status_code == 200, done.text
    assert router.preview("hello").json()["selected_model"] == "large"
    assert router.config.read_text().startswith("# mine\n")


def test_what_is_wrong_is_told_with_places_and_changes_nothing(router: RunningRouter) -> None:
    etag = router.get(ROOT).headers["etag"]
    bad = changed(router, operator="PERHAPS")
    refused = put(router, bad, etag)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "CONFIG_VALIDATION_ERROR")
    assert "keywords[0].operator" in refused.json()["error"]["diagnostics"][0]["path"]
    told = router.client.post(f"{router.management}{ROOT}/validate", json={"yaml": bad}).json()
    assert told["valid"] is False
    assert told["diagnostics"][0]["line"] > 1
    assert put(router, "a: [", etag).json()["error"]["code"] in ("CONFIG_VALIDATION_ERROR", "YAML_PARSE_ERROR")
    assert router.get(ROOT).headers["etag"] == etag
    assert decision(router, "python") == "code"


def test_a_plan_says_what_would_change(router: RunningRouter) -> None:
    plan = router.client.post(f"{router.management}{ROOT}/plan", json={"yaml": changed(router, keywords=["rust"]), "mode": "replace"}).json()
    assert plan["changed"]
    assert plan["current_etag"] == router.get(ROOT).headers["etag"]
    assert any("keywords" in change["path"] for change in plan["changes"])
    same = router.client.post(f"{router.management}{ROOT}/plan", json={"yaml": router.config.read_text()}).json()
    assert same["changed"] is False
    assert decision(router, "python") == "code"


def test_what_needs_a_restart_is_refused_with_its_name(router: RunningRouter) -> None:
    document = yaml.safe_load(router.config.read_text())
    document["listeners"][0]["port"] = 1234
    refused = put(router, yaml.safe_dump(document), router.get(ROOT).headers["etag"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "RESTART_REQUIRED")
    assert "port" in refused.json()["error"]["message"]


def test_a_rollback_is_a_new_version(router: RunningRouter) -> None:
    assert put(router, changed(router, keywords=["rust"]), router.get(ROOT).headers["etag"]).status_code == 200
    versions = router.get(f"{ROOT}/versions").json()["versions"]
    assert [version["version"] for version in versions] == ["2", "1"]
    url, etag = f"{router.management}{ROOT}/rollback", router.get(ROOT).headers["etag"]
    done = router.client.post(url, json={"version": "1"}, headers={"If-Match": etag})
    assert (done.status_code, done.json()["version"], done.json()["restored"]) == (200, "3", "1")
    assert decision(router, "python") == "code"
    assert router.chat("python").headers["x-vsr-config-version"] == "3"
    lost = router.client.post(url, json={"version": "77"}, headers={"If-Match": router.get(ROOT).headers["etag"]})
    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_recipes_are_added_read_and_removed(router: RunningRouter) -> None:
    path = f"{router.management}{ROOT}/recipes"
    recipe = {"name": "extra", "routing": {"decisions": [{"name": "all", "modelRefs": [{"model": "large"}]}]}}
    etag = router.client.get(path).headers["etag"]
    assert router.client.post(f"{path}/validate", json=recipe).json()["valid"]
    assert router.client.put(f"{path}/extra", json=recipe, headers={"If-Match": etag}).status_code == 200
    found = router.client.get(f"{path}/extra")
    assert found.json()["routing"]["decisions"][0]["name"] == "all"
    assert router.client.delete(f"{path}/extra", headers={"If-Match": found.headers["etag"]}).status_code == 200
    assert router.client.get(f"{path}/extra").status_code == 404


def test_the_schema_has_views(router: RunningRouter) -> None:
    index = router.get(f"{ROOT}/schema")
    assert index.status_code == 200
    whole = router.get(f"{ROOT}/schema?view=full").json()
    assert whole["$schema"].endswith("2020-12/schema")
    assert router.get(f"{ROOT}/schema?view=section&path=no.such").status_code in (400, 404)


def test_old_paths_still_lead_there(router: RunningRouter) -> None:
    assert router.get("/config/router").json() == router.get(ROOT).json()
    assert router.client.post(f"{router.management}/api/v1/eval", json={"text": "python"}).json()["selected_model"] == "large"
    assert router.get("/info/models").status_code == 200


def test_the_discovery_documents_list_every_route(router: RunningRouter) -> None:
    listed = router.get("/api/v1").json()["endpoints"]
    paths = router.get("/openapi.json").json()["paths"]
    assert {entry["path"] for entry in listed} == set(paths)
    one = router.get("/openapi.json?path=/api/v1/config&method=put").json()["paths"]
    assert list(one) == ["/api/v1/config"]
    assert list(one["/api/v1/config"]) == ["put"]


@pytest.mark.parametrize("broken", ["api_key: secret-in-file: [", "secret-in-file", ""])
def test_a_file_that_somebody_broke_is_told_of_without_its_words(router: RunningRouter, broken: str) -> None:
    router.config.write_text(broken)
    for path in (ROOT, ROOT + "/recipes", ROOT + "/recipes/default"):
        found = router.get(path)
        assert found.json()["error"]["code"] == "CONFIG_PARSE_ERROR", found.text
        assert "secret-in-file" not in found.text
    assert "Traceback" not in router.log.read_text()
    assert "secret-in-file" not in router.log.read_text()
    assert router.chat("python").status_code == 200
