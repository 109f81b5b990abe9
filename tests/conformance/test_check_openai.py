"""An outside checker of OpenAI servers, given by path in HEADWAY_CHECK_OPENAI, against a real server process.

Without the variable there is nothing to collect: the checker is not part of this repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.served_model import serve

CHECKER = os.environ.get("HEADWAY_CHECK_OPENAI")

if CHECKER:

    @pytest.mark.long
    @pytest.mark.timeout(600)
    def test_no_check_fails_and_only_missing_features_are_skipped(tmp_path: Path) -> None:
        report = tmp_path / "report.json"
        with serve(tmp_path) as served:
            done = subprocess.run(
                [sys.executable, str(CHECKER), "--base-url", served.url, "--skip-tag", "feature", "--json", str(report)],
                capture_output=True, text=True, timeout=500, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        checks = json.loads(report.read_text())["checks"]
        assert sum(c["result"] == "pass" for c in checks) >= 70
        skipped = {c["id"] for c in checks if c["result"] == "skip" and "feature" not in c["tags"]}
        assert skipped <= {"1.4.embeddings"}
