"""`import vllm` of the alias: what is there is Headway's, what is not says whose alias it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import headway
from headway.engine.outputs import CompletionOutput, OutputKind, RequestOutput
from headway.shim.install import Place, install
from headway.shim.names import MODULES, PROGRAMS


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The installed package, imported in this process and forgotten afterwards."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "programs").mkdir()
    install(Place(tmp_path / "packages", tmp_path / "programs", sys.executable))
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    finders = list(sys.meta_path)
    yield import_module("vllm")
    sys.meta_path[:] = finders
    for name in [n for n in sys.modules if n.partition(".")[0] == "vllm"]:
        del sys.modules[name]


def test_names_are_headways_own(vllm: ModuleType) -> None:
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found]
    from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs  # type: ignore[import-not-found]
    from vllm.outputs import RequestOutput as Output  # type: ignore[import-not-found]
    from vllm.sampling_params import RequestOutputKind  # type: ignore[import-not-found]

    assert LLM is headway.LLM
    assert SamplingParams is headway.SamplingParams
    assert (Output, vllm.CompletionOutput, RequestOutputKind) == (RequestOutput, CompletionOutput, OutputKind)
    assert issubclass(AsyncEngineArgs, EngineArgs)
    assert vllm.TokensPrompt(prompt_token_ids=[1]) == {"prompt_token_ids": [1]}
    assert vllm.__version__.startswith("0.32.0+headway.")


def test_everything_in_the_table_can_be_imported(vllm: ModuleType) -> None:
    for module, names in MODULES.items():
        found = import_module(module)
        assert sorted(names) == dir(found)
        for name in names:
            assert getattr(found, name) is not None
    for target in PROGRAMS.values():
        home, function = target.split(":")
        assert callable(getattr(import_module(home), function))


@pytest.mark.parametrize(
    "code", ["from vllm import ClassificationOutput", "from vllm.engine.arg_utils import Nope", "import vllm.worker.worker", "from vllm.worker import x"]
)
def test_what_is_missing_says_whose_alias_this_is(vllm: ModuleType, code: str) -> None:
    with pytest.raises(ImportError, match=r"this `vllm` is Headway's alias.*headway shim remove"):
        exec(code)


def test_attributes_and_probing(vllm: ModuleType) -> None:
    with pytest.raises(AttributeError, match=r"vllm has no ClassificationOutput: this `vllm` is Headway's alias.* LLM,"):
        _ = vllm.ClassificationOutput
    assert not hasattr(vllm, "ClassificationOutput")
    assert find_spec("vllm.sampling_params") is not None
    with pytest.raises(ModuleNotFoundError):
        find_spec("vllm.worker")
    assert find_spec("json") is not None


def test_importing_is_cheap(vllm: ModuleType) -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(vllm.__file__ or '').parents[1])!r}); import vllm; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_headway_the_alias_says_so(vllm: ModuleType) -> None:
    code = f"import sys; sys.modules['headway'] = None; sys.path.insert(0, {str(Path(vllm.__file__ or '').parents[1])!r}); import vllm"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Headway cannot be imported here. Install Headway, or delete the alias: pip uninstall vllm" in done.stderr


def test_programs_run_by_module_name(vllm: ModuleType) -> None:
    path = str(Path(vllm.__file__ or "").parents[1])
    for module, words, shown in [
        ("vllm", ["--version"], vllm.__version__),
        ("vllm.entrypoints.cli.main", ["--version"], vllm.__version__),
        ("vllm.entrypoints.openai.api_server", ["--help=port"], "--port N"),
    ]:
        code = f"import sys, runpy, json; sys.path.insert(0, {path!r}); sys.argv = json.loads({json.dumps(json.dumps([module, *words]))}); runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert shown in done.stdout, done.stderr
