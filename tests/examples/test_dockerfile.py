"""examples/compose/Dockerfile, read by hadolint. Docker itself is not run here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "examples" / "compose" / "Dockerfile"
IGNORE = DOCKERFILE.with_name(DOCKERFILE.name + ".dockerignore")


def stages() -> list[list[str]]:
    """The instructions of each stage, lines that go on joined."""
    text = re.sub(r"\\\n\s*", "", DOCKERFILE.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    starts = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    return [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def of(stage: list[str], name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in stage if line.startswith(name + " ")]


def test_hadolint_finds_nothing() -> None:
    done = subprocess.run([Path(sys.executable).with_name("hadolint"), "--format", "json", DOCKERFILE], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == []
    assert done.returncode == 0


def test_the_image_has_no_compiler_no_sources_and_a_user_by_number() -> None:
    build, image = stages()
    assert [base.partition(" ")[0] for base in of(build, "FROM") + of(image, "FROM")] == ["python:3.11-slim-bookworm"] * 2
    assert of(image, "COPY") == ["--from=build /opt/headway /opt/headway"]
    assert not any("apt-get" in line for line in image)
    assert all("--no-cache-dir" in line for line in of(build, "RUN") if "pip install" in line)
    assert of(image, "USER") == ["10001:10001"]
    assert any("--uid 10001" in line for line in of(image, "RUN"))


def test_what_is_built_is_what_the_build_needs_and_nothing_else_is_sent() -> None:
    build, _ = stages()
    copied = {word for line in of(build, "COPY") for word in line.split()[:-1]}
    needed = {"pyproject.toml", "README.md", "LICENSE", "requirements.lock", "csrc", "src"}  # of scikit-build-core, and the versions
    assert copied == needed
    assert all((ROOT / name).exists() for name in needed)
    lines = [line for line in IGNORE.read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == needed


def test_the_build_fails_without_the_kernels() -> None:
    """scikit-build-core goes on without them; the image must not."""
    build, _ = stages()
    assert "import headway.kernels._native" in of(build, "RUN")[-1]
    cmake = (ROOT / "csrc" / "CMakeLists.txt").read_text()
    assert "install(TARGETS _native LIBRARY DESTINATION headway/kernels)" in cmake
