"""The validator beside that of the public vllm-sr package (0.5.0.dev20261020093359), on 200 generated configurations.

HEADWAY_VLLM_SR_PEER names the package's `vllm-sr` executable. Every difference is one that docs/vllm-sr-differences.md names.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from headway.router.config.load import Source, examine
from tests.router.config.defects import DEFECTS
from tests.router.config.generated_configs import generated

COUNT = 200
PEER = os.environ.get("HEADWAY_VLLM_SR_PEER", "")
DOCUMENT = Path(__file__).parents[3] / "docs" / "vllm-sr-differences.md"

DIFFERENCES = {
    "rule: empty": False,
    "algorithm: not built": False,
    "plugin: not built": False,
    "projection: undeclared source": False,
    "deployment: a default taken away": True,
}
"""Defect -> whether Headway takes it; vllm-sr says the opposite."""


def ours(number: int) -> bool:
    return examine(Source(generated(number).text), {}).valid


def test_our_own_verdicts() -> None:
    """What was made valid is valid, and every defect is seen."""
    for number in range(COUNT):
        made = generated(number)
        expected = made.defect is None or DIFFERENCES.get(made.defect, False)
        assert ours(number) == expected, (made.defect, made.text)


def test_every_difference_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in DIFFERENCES if f"`{name}`" not in text] == []
    assert set(DIFFERENCES) <= set(DEFECTS)


@pytest.mark.skipif(not PEER, reason="HEADWAY_VLLM_SR_PEER does not name a vllm-sr executable")
@pytest.mark.timeout(300)
def test_the_verdicts_agree(tmp_path: Path) -> None:
    files = {}
    for number in range(COUNT):
        path = tmp_path / f"{number:03d}.yaml"
        path.write_text(generated(number).text, encoding="utf-8")
        files[str(path)] = number
    interpreter = Path(PEER).read_text(encoding="utf-8").splitlines()[0].removeprefix("#!").strip()
    script = str(Path(__file__).with_name("peer_verdicts.py"))
    output = subprocess.run([interpreter, script, *files], capture_output=True, text=True, check=True).stdout
    verdicts = {files[each["file"]]: each for each in map(json.loads, output.splitlines())}
    assert len(verdicts) == COUNT
    different = {}
    for number, verdict in verdicts.items():
        if ours(number) != verdict["valid"]:
            different[generated(number).defect or f"valid {number}"] = (ours(number), verdict["said"])
    assert {name: mine for name, (mine, _) in different.items()} == DIFFERENCES, different
