"""`headway serve` on several nodes: what flags and variables become in the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli.serve_config import serve_config
from headway.errors import ConfigError

GUIDE = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "RANK": "1", "WORLD_SIZE": "2"}


def placed(words: list[str], environment: dict[str, str]) -> tuple[tuple[int, int, str, int], list[str]]:
    said: list[str] = []
    engine = serve_config(words, environment, said.append).engine
    return (engine.nnodes, engine.node_rank, engine.master_addr, engine.master_port), said


def test_the_guide_s_variables_become_fields_and_are_told() -> None:
    found, said = placed(["-tp", "2", "-pp", "2"], GUIDE)
    assert found == (2, 1, "10.0.0.1", 29500)
    assert len(said) == 1
    assert "WORLD_SIZE counts nodes" in said[0]


def test_flags_alone() -> None:
    assert placed(["-tp", "2", "--nnodes", "2", "--node-rank", "1", "--master-addr", "10.0.0.9", "--headless"], {})[0] == (2, 1, "10.0.0.9", 29501)
    assert placed([], {}) == ((1, 0, "127.0.0.1", 29501), [])


def test_a_file_counts_as_flags(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("tensor-parallel-size: 2\nnnodes: 2\nnode-rank: 0\n")
    with pytest.raises(ConfigError) as caught:
        placed(["--config", str(path)], GUIDE)
    assert caught.value.reason == "launch_contradiction"


@pytest.mark.parametrize("words", [["--headless"], ["--headless", "-tp", "2", "--nnodes", "2", "--node-rank", "0"]])
def test_headless_is_not_for_the_first_node(words: list[str]) -> None:
    with pytest.raises(ConfigError, match="node 0 answers HTTP"):
        placed(words, {})
