"""`vllm-sr recipe` on the management endpoints of a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pytest
import yaml

from headway.cli.sr import vllm_sr
from headway.errors import ConfigError, HeadwayError, NotBuiltError
from tests.cli.test_sr_config_remote import Served, served  # noqa: F401 - a fixture

RECIPE = {"name": "team one", "routing": {"decisions": [{"name": "d", "modelRefs": [{"model": "small"}]}]}}


def run(url: str, *words: str) -> click.testing.Result:
    result = click.testing.CliRunner().invoke(vllm_sr, ["recipe", *words, "--endpoint", url])
    if isinstance(result.exception, HeadwayError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_a_recipe_comes_changes_and_goes(served: tuple[Served, str], tmp_path: Path) -> None:  # noqa: F811
    router, url = served
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(RECIPE))
    before = router.config.text
    assert "is valid" in run(url, "validate", str(file)).stdout
    assert router.config.text == before
    assert run(url, "apply", str(file)).stdout == "Version 2 serves.\n"
    assert json.loads(run(url, "list").stdout) == {"recipes": [RECIPE]}
    assert yaml.safe_load(run(url, "get", "team one").stdout) == RECIPE
    file.write_text(yaml.safe_dump({"name": "team one", "routing": {"decisions": [{"name": "other", "modelRefs": [{"model": "large", "use_reasoning": True}]}]}}))
    run(url, "apply", str(file))
    assert "name: other" in run(url, "get", "team one").stdout
    assert run(url, "delete", "team one").stdout == "Version 4 serves.\n"
    assert json.loads(run(url, "list").stdout) == {"recipes": []}


def test_what_is_wrong_is_told_and_changes_nothing(served: tuple[Served, str], tmp_path: Path) -> None:  # noqa: F811
    router, url = served
    before, file = router.config.text, tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump({"name": "r", "routing": {"decisions": [{"name": "d", "modelRefs": [{"model": "smal"}]}]}}))
    for command in ("validate", "apply"):
        with pytest.raises(ConfigError, match="would not be valid"):
            run(url, command, str(file))
    assert "PUT" not in {method for method, _ in router.requests}
    file.write_text("- a list")
    with pytest.raises(ConfigError, match="must hold one recipe"):
        run(url, "apply", str(file))
    for name in ("get", "delete"):
        with pytest.raises(HeadwayError, match='there is no recipe "gone"'):
            run(url, name, "gone")
    assert router.config.text == before


@pytest.mark.parametrize("words", [["plan", "x.yaml"], ["builtin", "list"], ["pack", "DIR", "--output", "x.zip"]])
def test_what_is_not_built_says_what_to_use(words: list[str]) -> None:
    result = click.testing.CliRunner().invoke(vllm_sr, ["recipe", *words])
    assert isinstance(result.exception, NotBuiltError)
    assert result.exception.fix
