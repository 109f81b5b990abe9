"""Fresh virtual environments in which the packages of this one, and Headway's source, can be imported."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        return next((self.folder / "lib").glob("python3*")) / "site-packages"

    def run(self, *command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Its programs come first on the PATH, as when it is activated; Headway comes from its packages, not from PYTHONPATH."""
        words = [str(word) for word in command]
        return subprocess.run(words, cwd=cwd or self.folder, env=self.variables(), capture_output=True, text=True, timeout=300, check=False)

    def headway(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.python, "-m", "headway.cli.main", *words)

    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")}
        return {**kept, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def environment(folder: Path) -> Environment:
    venv.create(folder, symlinks=True, with_pip=False)
    made = Environment(folder)
    (made.packages / "beside.pth").write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
    return made
