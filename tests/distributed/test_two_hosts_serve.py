"""One model on two hosts, from the guide's recipe to a cable that is cut in the middle of a stream, and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.test_preflight_hosts import NEEDS_NAMESPACES
from tests.docs.pages import ROOT
from tests.e2e.tiny_model import tiny_model

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(300), NEEDS_NAMESPACES]


def test_a_cable_that_is_cut_ends_the_stream_with_an_error_and_the_group_comes_back(tmp_path: Path) -> None:
    words = ["unshare", "-rn", sys.executable, "-m", "tests.distributed.two_hosts_serve", str(tiny_model(tmp_path)), str(tmp_path), "4"]
    environment = {**os.environ, "HEADWAY_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, env=environment, cwd=ROOT)
    logs = "\n".join((tmp_path / f"node{rank}.log").read_text()[-3000:] for rank in (0, 1))
    assert done.returncode == 0, done.stderr + logs
    story, codes = (json.loads(line) for line in done.stdout.splitlines())
    assert story["before"] == story["after"] != ""
    assert '"error"' in "".join(story["last"])
    assert story["health"]["reason"] == "rank_failed", story["health"]
    assert story["health"]["rank"] == 1
    assert codes == [0, 0], logs
