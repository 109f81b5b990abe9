"""E05: rule trees that would load and mean something else. The command, the start, the management address and the watched file refuse them alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import pytest
import yaml

from headway.cli.sr import vllm_sr
from headway.router.config.diagnostics import ConfigRejected
from tests.cases.router_case import decision, document
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.upstream.scripted_backend import answers

WORD: dict[str, Any] = {"type": "keyword", "name": "invoice_words"}
CANDIDATES = {"hard": {"candidates": ["prove it"]}, "easy": {"candidates": ["say hi"]}}
SIGNALS = {
    "keywords": [{"name": "invoice_words", "operator": "OR", "keywords": ["invoice"]}],
    "complexity": [{"name": "needs_reasoning", "threshold": 0.1, **CANDIDATES}],
}
# what is wrong -> the rules, the place that is named, and what the message says
DEFECTS: dict[str, tuple[Any, str, str]] = {
    "operator XOR": ({"operator": "XOR", "conditions": [WORD]}, "rules.operator", '"OR"'),
    "NOT with two": ({"operator": "NOT", "conditions": [WORD, WORD]}, "rules", "exactly one condition, found 2"),
    "leaf with children": ({"conditions": [WORD, {**WORD, "conditions": [WORD]}]}, "rules.conditions[1]", "either a condition or a combination"),
    "name only": ({"conditions": [WORD, {"name": "invoice_words"}]}, "rules.conditions[1]", "type is missing"),
    "type only": ({"conditions": [WORD, {"type": "keyword"}]}, "rules.conditions[1]", "name is missing"),
    "empty": ({}, "rules", "empty node"),
    "nested empty AND": ({"operator": "OR", "conditions": [WORD, {"operator": "AND", "conditions": []}]}, "rules.conditions[1]", "without conditions"),
    "bogus type": ({"conditions": [WORD, {"type": "bogus", "name": "x"}]}, "rules.conditions[1].type", "bogus"),
    "undefined signal": ({"conditions": [WORD, {"type": "keyword", "name": "invoice_word"}]}, "rules.conditions[1].name", 'Did you mean "invoice_words"?'),
    "bare name": ({"conditions": [WORD, {"type": "complexity", "name": "needs_reasoning"}]}, "rules.conditions[1].name", "needs_reasoning:hard"),
}


def written(rules: Any, model: str = "large") -> str:
    routing = {"signals": SIGNALS, "decisions": [decision("billing", model=model)]}
    routing["decisions"][0]["rules"] = rules  # type: ignore[index]
    catalog = {"embeddings": {"semantic": {"endpoint": {"base_url": "http://127.0.0.1:9/v1", "model": "e5"}}}}
    return yaml.safe_dump(document({"large": "127.0.0.1:9"}, routing, **{"global": {"model_catalog": catalog}}), sort_keys=False)


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with backend(answers()) as one, started_router(tmp_path_factory.mktemp("trees"), document({"large": one.endpoint}, {})) as found:
        yield found


def refused_everywhere(router: RunningRouter, folder: Path, text: str) -> list[str]:
    """The errors, which are the same words at every entrance; the router serves on as it was."""
    file = folder / "bad.yaml"
    file.write_text(text)
    run = click.testing.CliRunner().invoke
    checked = run(vllm_sr, ["config", "validate", "--config", str(file), "--json"])
    assert checked.exit_code == 1
    found = [each["message"] for each in json.loads(checked.stdout)["diagnostics"] if each["severity"] == "error"]
    started = run(vllm_sr, ["serve", "--config", str(file)])
    assert isinstance(started.exception, ConfigRejected)
    assert [each.message for each in started.exception.diagnostics if each.severity == "error"] == found

    asked = router.client.post(f"{router.management}/api/v1/config/validate", json={"yaml": text}).json()
    assert asked["valid"] is False
    assert [each["message"] for each in asked["diagnostics"] if each["severity"] == "error"] == found
    current = router.get("/api/v1/config")
    put = router.client.put(f"{router.management}/api/v1/config", json={"yaml": text}, headers={"if-match": current.headers["etag"]})
    assert put.status_code == 400, put.text
    assert found[0] in put.json()["error"]["message"]
    assert router.get("/api/v1/config").headers["etag"] == current.headers["etag"]
    assert router.chat("hi").status_code == 200
    return [str(each) for each in started.exception.diagnostics if each.severity == "error"]


@pytest.mark.parametrize("defect", DEFECTS)
def test_e05_a_defect_is_refused_with_its_place(router: RunningRouter, tmp_path: Path, defect: str) -> None:
    rules, place, says = DEFECTS[defect]
    (told,) = refused_everywhere(router, tmp_path, written(rules))
    assert 'decision "billing"' in told
    assert place in told
    assert says in told
    assert told.startswith("line ")


def test_e05_a_model_that_is_not_declared(router: RunningRouter, tmp_path: Path) -> None:
    (told,) = refused_everywhere(router, tmp_path, written({"conditions": [WORD]}, model="larg"))
    assert 'Did you mean "large"?' in told
    assert "modelRefs[0]" in told


@pytest.mark.parametrize("rules", [{"conditions": [WORD, WORD]}, {"operator": "and", "conditions": [WORD, WORD]}, {"operator": "Or", "conditions": [WORD]}])
def test_e05_an_omitted_operator_is_and_and_letter_case_is_free(router: RunningRouter, rules: Any) -> None:
    asked = router.client.post(f"{router.management}/api/v1/config/validate", json={"yaml": written(rules)}).json()
    assert asked["valid"], asked
    read = yaml.safe_load(asked["yaml"])["routing"]["decisions"][0]["rules"]
    assert read.get("operator", "AND") == ("OR" if rules.get("operator") == "Or" else "AND")
