"""`vllm-sr config`: files."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pytest
import yaml

from headway.cli.sr import vllm_sr
from headway.errors import HeadwayError
from tests.router.config.documents import BASE, changed
from tests.router.config.migration.test_layouts import CLI_V01
from tests.router.config.migration.test_removed_fields import LATENCY


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int = 0) -> click.testing.Result:
    result = click.testing.CliRunner().invoke(vllm_sr, ["config", *words])
    if isinstance(result.exception, HeadwayError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_init_writes_a_valid_configuration(folder: Path) -> None:
    run("init")
    assert "config.yaml is valid: 1 listener, 2 models, 1 decision." in run("validate").output
    with pytest.raises(HeadwayError, match="--force"):
        run("init")
    run("init", "--force")
    run("init", "--output", "below/other.yaml")
    run("validate", "--config", "below/other.yaml", "--offline")


def test_validate_tells_everything_with_lines(folder: Path) -> None:
    Path("config.yaml").write_text(BASE.replace("model: small}", "model: smal}", 1).replace("port: 8899", "port: 8899, adress: x"))
    result = run("validate", code=1)
    assert "error: line 3: listeners[0].adress: unknown key" in result.stderr
    assert "error: line 5: providers.defaults.model" in result.stderr
    assert "config.yaml has 2 errors." in result.stderr
    body = json.loads(run("validate", "--json", code=1).stdout)
    assert body["valid"] is False
    assert [(each["line"], each["reason"]) for each in body["diagnostics"]] == [(3, "unknown_key"), (5, "model_undeclared")]


def test_validate_without_a_file(folder: Path) -> None:
    with pytest.raises(HeadwayError, match="config init") as caught:
        run("validate")
    assert caught.value.reason == "config_unreadable"


def test_warnings_do_not_fail(folder: Path) -> None:
    Path("config.yaml").write_text(BASE.replace("keywords: [sum]", 'keywords: ["${NOT_SET_ANYWHERE:-}x", "${NOT_SET_ANYWHERE}y"]'))
    result = run("validate")
    assert "warning: line 18" in result.stderr
    assert "NOT_SET_ANYWHERE" in result.stderr


def test_migrate_beside_the_file(folder: Path) -> None:
    Path("config.yaml").write_text(CLI_V01)
    result = run("migrate")
    assert "-version: v0.1\n+version: v0.3\n" in result.stdout
    assert "decisions: moved to routing.decisions" in result.stdout
    assert "Wrote config.migrated.yaml." in result.stdout
    assert Path("config.yaml").read_text() == CLI_V01
    run("validate", "--config", "config.migrated.yaml")
    assert "Wrote config.migrated.yaml." in run("migrate").stdout  # an equal output is left alone
    Path("config.migrated.yaml").write_text("mine")
    with pytest.raises(HeadwayError, match="--force"):
        run("migrate")
    run("migrate", "--force")
    assert Path("config.migrated.yaml.bak").read_text() == "mine"


def test_migrate_in_place_keeps_a_copy_and_is_idempotent(folder: Path) -> None:
    Path("config.yaml").write_text(CLI_V01)
    result = run("migrate", "--in-place")
    assert "What was there before is config.yaml.bak." in result.stdout
    assert Path("config.yaml.bak").read_text() == CLI_V01
    migrated = Path("config.yaml").read_text()
    assert "Nothing to migrate." in run("migrate", "--in-place").stdout
    assert Path("config.yaml").read_text() == migrated
    assert sorted(path.name for path in folder.iterdir()) == ["config.yaml", "config.yaml.bak"]
    Path("config.yaml").write_text(CLI_V01)
    run("migrate", "--in-place")
    assert Path("config.yaml.bak.1").exists()


def test_migrate_check_writes_nothing(folder: Path) -> None:
    Path("config.yaml").write_text(CLI_V01)
    assert "Would be done:" in run("migrate", "--check", code=1).stdout
    assert [path.name for path in folder.iterdir()] == ["config.yaml"]
    Path("config.yaml").write_text(BASE)
    assert "Nothing to migrate." in run("migrate", "--check").stdout


def test_what_cannot_be_migrated_is_an_exit_code(folder: Path) -> None:
    Path("config.yaml").write_text(LATENCY.replace("OPERATOR", "OR"))
    result = run("migrate", "--in-place", code=1)
    assert "Left to do by hand:\n  routing.decisions[0].rules.conditions[1]:" in result.stderr
    assert "use the algorithm latency_aware (line " in result.stderr
    assert result.stderr.count("conditions[1]") == 1  # the validator's word on the same place is not repeated
    assert "Still wrong in the result:" in result.stderr
    body = json.loads(run("migrate", "--check", "--json", code=1).stdout)
    assert body["complete"] is False
    assert body["open"][0]["path"] == "routing.decisions[0].rules.conditions[1]"


def test_a_refusal_is_told_once_for_all_places(folder: Path) -> None:
    plugin = {"type": "image_gen", "configuration": {"enabled": True}}
    data = changed("routing", "decisions", 0, "plugins", to=[plugin])
    data["routing"]["decisions"].append({**data["routing"]["decisions"][0], "name": "second", "priority": 5})
    data["global"] = {"model_catalog": {"deployments": {"d": {"provider": "model_runtime", "artifact": "models/x"}}}}
    Path("config.yaml").write_text(yaml.safe_dump(data))
    told = run("migrate", "--check", code=1).stderr
    assert told.count("image_gen is not supported") == 1
    assert "(also line " in told
    assert told.count("models/x is a relative path") == 1
    assert "Still wrong in the result:\n  line" in told


def test_a_file_that_cannot_be_written(folder: Path) -> None:
    Path("config.yaml").write_text(CLI_V01)
    Path("place").write_text("a file")
    with pytest.raises(HeadwayError, match="cannot be written"):
        run("migrate", "--output", "place/c.yaml")


def test_router_prints_the_normal_form_without_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-secret")
    Path("config.yaml").write_text(BASE.replace('{endpoint: "127.0.0.1:8000"}', '{endpoint: "127.0.0.1:8000", api_key: "${KEY}"}'))
    shown = run("router").stdout
    assert "sk-secret" not in shown
    assert "api_key: '***'" in shown
    assert "sk-secret" in run("router", "--show-secrets").stdout
    assert json.loads(run("router", "--json").stdout)["version"] == "v0.3"


def test_schema(folder: Path) -> None:
    assert json.loads(run("schema").stdout)["config_version"] == "v0.3"
    assert json.loads(run("schema", "--full").stdout)["$schema"].endswith("2020-12/schema")
    assert json.loads(run("schema", "--surface", "algorithm:hybrid").stdout)["config_field"] == "hybrid"
    assert json.loads(run("schema", "--section", "listeners").stdout)["path"] == "listeners"
    with pytest.raises(HeadwayError, match="KIND:NAME"):
        run("schema", "--surface", "hybrid")
    with pytest.raises(HeadwayError, match="three different things"):
        run("schema", "--full", "--section", "listeners")


def test_commands_that_are_not_built() -> None:
    with pytest.raises(HeadwayError, match="not built"):
        run("envoy")
