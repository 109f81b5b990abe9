"""The programs of Debian's package `prometheus`, which .ci/run fetches."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VARIABLE = "HEADWAY_PROMETHEUS"
_HOW = f"""The tests of the dashboard and the alerts need the programs prometheus and promtool (2.42 or later), in the folder that
{VARIABLE} names or on the PATH. On Debian:
  apt-get download prometheus && dpkg-deb -x prometheus_*.deb unpacked && export {VARIABLE}=$PWD/unpacked/usr/bin"""


def program(name: str) -> Path:
    """Fails the test, with the way out, when the program is not there."""
    folder = os.environ.get(VARIABLE)
    found = shutil.which(name, path=folder) if folder else shutil.which(name)
    assert found is not None, _HOW
    return Path(found)


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *words], capture_output=True, text=True, timeout=60, check=False)
