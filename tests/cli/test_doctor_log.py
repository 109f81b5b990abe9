"""`headway doctor log`: exit status, forms of input, the same bytes for the same bytes, a quick start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli.main import run
from tests.doctor.judging import FIXTURES

FAULT = FIXTURES / "memory-10"
HEALTHY = FIXTURES / "memory-18" / "log.txt"
UNDECIDED = FIXTURES / "loading-21" / "log.txt"


def call(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = 0
    try:
        run("headway", ["doctor", "log", *map(str, words)])
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capfd.readouterr()
    return code, out, err


def test_findings_are_status_1(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, FAULT / "log.txt", "--context", FAULT / "context.yaml", "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["rule"] == "O3"


def test_a_healthy_log_is_status_0(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, HEALTHY, "--lang", "en")
    assert code == 0
    assert "Nothing wrong was found" in " ".join(out.split())


def test_what_cannot_be_told_is_status_2(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, UNDECIDED, "--lang", "zh")
    assert code == 2
    assert "无法判定原因" in out


def test_a_file_that_is_not_there_is_an_error(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = call(capfd, tmp_path / "none.log")
    assert code == 2
    assert out == ""
    assert "none.log" in err


def test_a_context_that_is_no_mapping_is_an_error(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("- 1\n")
    code, _, err = call(capfd, HEALTHY, "--context", tmp_path / "c.yaml")
    assert code == 2
    assert "must be a mapping" in err


_EVERY = """
import sys
from pathlib import Path
from headway.doctor.examine import examine
from headway.doctor.report.as_json import report_json
for folder in sorted(Path(sys.argv[1]).iterdir())[::5]:
    context = folder / "context.yaml"
    for language in ("en", "zh"):
        print(report_json(examine([folder / "log.txt"], context if context.exists() else None).report, language))
"""


def test_the_same_bytes_give_the_same_bytes() -> None:
    outputs = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.append(subprocess.run([sys.executable, "-c", _EVERY, str(FIXTURES)], env=environment, capture_output=True, check=True).stdout)
    assert len(outputs[0]) > 20_000
    assert outputs[0] == outputs[1]


def test_standard_input(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "headway.cli.main", "doctor", "log", "-", "--json"]
    done = subprocess.run(words, stdin=(FAULT / "log.txt").open("rb"), capture_output=True)
    assert json.loads(done.stdout)["findings"][0]["evidence"][0]["source"] == "stdin"


_HEAVY = ("torch", "transformers", "numpy", "pydantic", "fastapi", "uvicorn", "aiohttp", "tokenizers", "safetensors", "huggingface_hub", "asyncio", "rich")
_IMPORTED = """
import sys
from headway.cli.main import run
try:
    run("headway", sys.argv[1:])
except SystemExit:
    pass
print("|".join(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""


@pytest.mark.parametrize("words", [["doctor", "log", "--help"], ["doctor", "log", str(FAULT / "log.txt"), "--context", str(FAULT / "context.yaml"), "--json"]])
def test_it_starts_without_the_heavy_libraries(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTED, *words], capture_output=True, text=True, check=True)
    assert done.stdout
    imported = set(done.stderr.strip().splitlines()[-1].split("|"))
    assert "headway" in imported
    assert imported.isdisjoint(_HEAVY)
