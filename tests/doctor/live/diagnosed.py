"""Running the doctor as people do, and what it must have said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.shim.environments import ROOT

_SECONDS = 120


def doctor(*words: str, prefix: tuple[str, ...] = (), **variables: str) -> dict[str, Any]:
    """The JSON of `headway doctor WORDS`; `prefix` goes before the command (another namespace)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
    command = [*prefix, sys.executable, "-m", "headway.cli.main", "doctor", *words, "--json"]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS, env=environment, check=False)
    assert done.stdout, done.stderr.decode()
    answer: dict[str, Any] = json.loads(done.stdout)
    answers = [finding for finding in answer.get("findings", []) if finding["confidence"] > 0.5]
    assert done.returncode == (1 if answers else 2 if answer.get("abstained") else 0), done.stderr.decode()
    return answer


def first(answer: dict[str, Any]) -> dict[str, Any]:
    """The first finding, which must be an answer with a fix and a check."""
    assert answer["findings"], answer
    finding: dict[str, Any] = answer["findings"][0]
    assert finding["confidence"] > 0.5, answer
    assert finding["fixes"], finding
    assert finding["verify"], finding
    return finding


def fixes(finding: dict[str, Any]) -> str:
    return "\n".join(f"{fix['text']} {fix['command'] or ''}" for fix in finding["fixes"])


def serve_log(folder: Path, model: str | Path, *flags: str, seconds: float = 60, **variables: str) -> Path:
    """What `headway serve` printed when it could not start."""
    log = folder / "server.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
    command = [sys.executable, "-m", "headway.cli.main", "serve", str(model), *flags]
    with log.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment, timeout=seconds, check=False)
    assert done.returncode != 0, log.read_text()
    return log
