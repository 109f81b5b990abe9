"""E06: an old configuration is refused by the name of the key, its line and the command that repairs it, and the command loses nothing silently."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import click.testing
import pytest

from headway.cli.sr import vllm_sr
from headway.router.config.diagnostics import ConfigRejected

HEAD = """\
# Routing of the shop.
version: v0.3
listeners:
  - {name: public, port: 8899}  # behind the proxy
providers:
  defaults: {model: small}
  models:
    - name: small
      backend_refs: &here
        - {endpoint: "127.0.0.1:8000"}
    - name: large
      backend_refs: *here
"""
OLD = HEAD + """\
global:
  model_catalog:
    deployments:
      judge:
        provider: model_runtime
        artifact: /models/judge
        precision: fp16  # as before
    modules:
      prompt_guard:
        use_mmbert_32k: true
"""
LATENCY = HEAD + """\
routing:
  decisions:
    - name: quick
      modelRefs: [{model: small}]
      rules:
        operator: OR
        conditions:
          - {type: latency, name: fast}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(vllm_sr, list(words))


def refused(text: str) -> list[str]:
    Path("config.yaml").write_text(text)
    started = run("serve", "--config", "config.yaml")
    assert isinstance(started.exception, ConfigRejected), (started.exception, started.output)
    return [str(each) for each in started.exception.diagnostics if each.severity == "error"]


@pytest.mark.parametrize(
    ("old", "key", "line"),
    [
        ("global:\n  model_catalog:\n    modules:\n      prompt_guard: {use_mmbert_32k: true}\n", "use_mmbert_32k", 16),
        ("global:\n  model_catalog:\n    deployments:\n      d: {provider: candle, artifact: models/x}\n", "candle", 16),
        ("global:\n  model_catalog:\n    deployments:\n      d: {provider: model_runtime, artifact: /a, precision: fp16}\n", "precision", 16),
        ("candle: {}\n", "candle", 13),
    ],
)
def test_e06_an_old_key_is_refused_with_its_line_and_the_command(old: str, key: str, line: int) -> None:
    told = [each for each in refused(HEAD + old) if key in each]
    assert told
    assert told[0].startswith(f"line {line}: ")
    assert "vllm-sr config migrate" in told[0]


def test_e06_a_misspelt_key_is_refused_with_a_suggestion() -> None:
    rule = "routing:\n  signals:\n    preferences:\n      - {name: terse, description: Short answers, treshold: 0.5}\n"
    (told,) = refused(HEAD + rule)
    assert told.startswith("line 16: ")
    assert '"threshold"' in told


def test_e06_a_second_document_is_refused_at_its_line() -> None:
    (told,) = refused(HEAD + "---\nversion: v0.3\n")
    assert "line 1" in told
    assert "second YAML document" in told


def test_e06_migrating_shows_a_difference_keeps_comments_and_is_idempotent(folder: Path) -> None:
    Path("config.yaml").write_text(OLD)
    first = run("config", "migrate", "--in-place")
    assert first.exit_code == 0, first.output
    assert "-        precision: fp16" in first.stdout
    assert "-        use_mmbert_32k: true" in first.stdout
    now = Path("config.yaml").read_text()
    assert Path("config.yaml.bak").read_text() == OLD
    for kept in ("# Routing of the shop.", "# behind the proxy", "&here", "*here"):
        assert kept in now
    assert now.index("version:") < now.index("listeners:") < now.index("providers:") < now.index("global:")
    again = run("config", "migrate", "--in-place")
    assert (again.exit_code, Path("config.yaml").read_text()) == (0, now)
    assert "Nothing to migrate." in again.stdout
    assert sorted(each.name for each in folder.iterdir()) == ["config.yaml", "config.yaml.bak"]
    assert run("config", "validate").exit_code == 0


def test_e06_what_has_no_equal_is_listed_with_an_exit_code() -> None:
    Path("config.yaml").write_text(LATENCY)
    found = run("config", "migrate", "--json")
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert told["complete"] is False
    assert told["open"][0]["path"] == "routing.decisions[0].rules.conditions[0]"


def test_e06_a_read_only_file_is_migrated_beside(folder: Path) -> None:
    file = Path("config.yaml")
    file.write_text(OLD)
    file.chmod(stat.S_IRUSR)
    found = run("config", "migrate")
    assert found.exit_code == 0, found.output
    assert file.read_text() == OLD
    assert "precision" not in Path("config.migrated.yaml").read_text()
    assert run("config", "validate", "--config", "config.migrated.yaml").exit_code == 0


def test_e06_another_version_of_the_document_is_named() -> None:
    for version, says in (("v0.4", "newer"), ("v0.1", "vllm-sr config migrate")):
        told = " ".join(refused(HEAD.replace("version: v0.3", f"version: {version}")))
        assert version in told
        assert says in told, told
