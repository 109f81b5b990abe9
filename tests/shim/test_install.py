"""`headway shim install` and `remove` in real virtual environments."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from headway import __version__
from headway.errors import ConfigError
from headway.shim import install as install_module
from headway.shim.install import Place, install, remove
from tests.shim.environments import Environment, environment

ALIAS = f"0.32.0+headway.{__version__}"


@pytest.fixture
def fresh(tmp_path: Path) -> Environment:
    return environment(tmp_path / "venv")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Two folders, for what needs no interpreter."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "programs").mkdir()
    return Place(tmp_path / "packages", tmp_path / "programs", sys.executable)


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}


def test_install_then_use_then_remove_leaves_nothing(fresh: Environment) -> None:
    before = files(fresh.folder)
    first = json.loads(fresh.headway("shim", "install", "--json").stdout)
    assert (first["action"], first["version"]) == ("installed", ALIAS)
    assert {Path(path) for path in first["files"]} == files(fresh.folder) - before
    again = json.loads(fresh.headway("shim", "install", "--json").stdout)
    assert (again["action"], again["files"]) == ("already installed", first["files"])

    assert fresh.run("vllm", "--version").stdout == f"{ALIAS}\n"
    code = "import vllm, importlib.metadata as m; print(vllm.__version__, m.version('vllm'), m.metadata('vllm')['Summary'])"
    shown = fresh.run(fresh.python, "-c", code).stdout
    assert shown.startswith(f"{ALIAS} {ALIAS} Headway's alias")

    assert list(fresh.packages.glob("vllm/__pycache__/*.pyc")), "Python has left something of its own beside the files"
    removed = json.loads(fresh.headway("shim", "remove", "--json").stdout)
    assert removed["action"] == "removed"
    assert files(fresh.folder) == before
    assert not (fresh.packages / "vllm").exists()
    assert json.loads(fresh.headway("shim", "remove", "--json").stdout)["action"] == "nothing to remove"
    assert "No module named 'vllm'" in fresh.run(fresh.python, "-c", "import vllm").stderr


def test_pip_sees_and_uninstalls_the_alias(fresh: Environment) -> None:
    assert fresh.headway("shim", "install").returncode == 0
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", fresh.python)
    shown = fresh.run(*pip, "show", "vllm").stdout
    assert f"Version: {ALIAS}" in shown
    assert fresh.run(*pip, "uninstall", "-y", "vllm").returncode == 0
    assert not list(fresh.packages.glob("vllm*"))
    assert not (fresh.folder / "bin" / "vllm").exists()


@pytest.mark.parametrize(
    "theirs", ["packages/vllm/__init__.py", "packages/vllm-0.32.0.dist-info/METADATA", "packages/vllm-0.32.egg-info/PKG-INFO",
               "packages/__editable__.vllm-0.32.0.pth", "programs/vllm"],
)  # fmt: skip
def test_a_real_vllm_is_never_hidden(place: Place, theirs: str) -> None:
    path = place.packages.parent / theirs
    path.parent.mkdir(exist_ok=True)
    path.write_text("real")
    with pytest.raises(ConfigError, match="not Headway's alias") as caught:
        install(place)
    assert caught.value.reason == "vllm_installed"
    assert files(place.packages.parent) == {path}


def test_a_vllm_elsewhere_on_the_path_is_seen(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "vllm").mkdir(parents=True)
    (checkout / "vllm" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(checkout))
    with pytest.raises(ConfigError, match="checkout"):
        install(place)


def test_the_command_says_it_in_one_line(fresh: Environment) -> None:
    (fresh.packages / "vllm").mkdir()
    (fresh.packages / "vllm" / "__init__.py").write_text("")
    done = fresh.headway("shim", "install")
    assert done.returncode == 1
    assert done.stderr.startswith("headway: A vllm that is not Headway's alias is here already")
    assert len(done.stderr.splitlines()) == 1


def test_what_somebody_changed_is_not_deleted(place: Place) -> None:
    install(place)
    changed = place.packages / "vllm" / "__init__.py"
    changed.write_text("mine")
    before = files(place.packages.parent)
    with pytest.raises(ConfigError, match="differ") as caught:
        remove(place)
    assert caught.value.reason == "alias_changed"
    assert files(place.packages.parent) == before


def test_an_older_alias_is_replaced(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as old:
        folder = "vllm-0.31.0+headway.0.0.9.dist-info"
        for module in ("headway.shim.install", "headway.shim.files"):
            old.setattr(f"{module}.METADATA_FOLDER", folder)
            old.setattr(f"{module}.RECORD", f"{folder}/RECORD")
        install(place)
    assert install(place).action == "installed"
    assert [path.name for path in place.packages.glob("*.dist-info")] == [f"vllm-{ALIAS}.dist-info"]


@pytest.mark.parametrize("folder", ["packages", "programs"])
def test_without_permission_nothing_is_written(place: Place, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """The answer of the system is played, since root may write everywhere."""
    closed = place.packages.parent / folder
    monkeypatch.setattr(install_module.os, "access", lambda path, mode: Path(path) != closed)
    with pytest.raises(ConfigError, match=f"The folder {closed} of this environment .* cannot be written") as caught:
        install(place)
    assert caught.value.reason == "not_writable"
    assert files(place.packages.parent) == set()


def test_a_full_disk_leaves_no_half(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_text

    def full(self: Path, *args: str, **kwargs: str) -> int:
        if self.name == "RECORD":
            raise OSError(28, "No space left on device", str(self))
        return real(self, *args, **kwargs)

    monkeypatch.setattr(install_module.Path, "write_text", full)
    with pytest.raises(ConfigError, match="No space left"):
        install(place)
    assert files(place.packages.parent) == set()


def test_a_path_that_no_first_line_can_hold(tmp_path: Path) -> None:
    long = environment(tmp_path / ("with space " + "x" * 120))
    assert long.headway("shim", "install").returncode == 0
    assert long.run("vllm", "--version").stdout == f"{ALIAS}\n"
