"""`headway eval`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from safetensors.torch import load_file, save_file

from headway.cli import eval_quantize
from headway.cli.eval import eval_command, share
from headway.errors import ConfigError
from tests.evaluation.trained_model import copy_folder, text, trained_model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_model(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "sample.txt"
    path.write_text(text().content[:4000])
    return path


def run(*words: object) -> Result:
    result = CliRunner().invoke(eval_command, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def worse(model: Path, home: Path) -> Path:
    copy_folder(model, home, {})
    tensors = load_file(model / "model.safetensors")
    save_file({**tensors, "model.norm.weight": tensors["model.norm.weight"] * 0.3}, home / "model.safetensors", {"format": "pt"})
    return home


def test_good_and_bad(trained: Path, sample: Path, tmp_path: Path) -> None:
    flags = ("--against", trained, "--text", sample, "--dtype", "float32", "--max-length", "128", "--limit", "12")
    good = run(trained, *flags)
    assert good.exit_code == 0, good.output
    assert "PASS: perplexity is at most 0 % worse, 2 % are allowed." in good.stdout
    assert "text sample.txt:" in good.stdout
    bad = run(worse(trained, tmp_path / "worse"), *flags)
    assert bad.exit_code == 1, bad.output
    assert "FAIL: perplexity is" in bad.stdout
    assert "the baseline's results are those of an earlier run" in bad.stdout
    rows = {line.split("  ")[0]: line for line in bad.stdout.splitlines()}
    assert {"perplexity of a token", "bits for a byte", "KL divergence", "same first choice", "headway: 12 questions"} <= set(rows)


def test_alone(trained: Path, sample: Path) -> None:
    found = run(trained, "--text", sample, "--dtype", "float32", "--limit", "2", "--json")
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["verdict"] == "pass"
    assert answer["comparison"] is None
    assert answer["settings"]["stride"] == 128
    assert answer["tasks"][0]["questions"] == 2


def test_too_little_to_tell(trained: Path, sample: Path, tmp_path: Path) -> None:
    sample.write_text(text().content[:400])
    home = tmp_path / "near"
    copy_folder(trained, home, {})
    tensors = load_file(trained / "model.safetensors")
    save_file({**tensors, "model.norm.weight": tensors["model.norm.weight"] * 1.1}, home / "model.safetensors", {"format": "pt"})
    found = run(home, "--against", trained, "--text", sample, "--dtype", "float32")
    assert found.exit_code == 2, found.output
    assert "CANNOT TELL" in found.stdout
    assert "a longer text" in found.stdout


@pytest.mark.parametrize(
    "words",
    [(), ("m", "--output", "x"), ("m", "--tokenizer", "x"), ("m", "--quantize", "int8", "--against", "n"), ("--base-url", "http://x", "--quantize", "int8")],
)
def test_wrong_use(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(eval_command, words)
    assert result.exit_code == 2
    assert "Usage:" in result.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("no-such-model",), "unknown_model"), (("./nowhere",), "missing_file"), (("m", "--threshold", "150%"), "invalid_config"),
        (("m", "--text", "nowhere.txt"), "evaluation_text"), (("m", "--task", "nowhere.jsonl"), "evaluation_task"),
        (("m", "--max-length", "32", "--stride", "33"), "invalid_config"), (("--base-url", "http://127.0.0.1:9"), "no_server"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_has_a_reason(words: tuple[str, ...], reason: str) -> None:
    found = run(*words, "--json")
    assert found.exit_code == 2
    assert json.loads(found.stdout)["error"]["reason"] == reason
    assert run(*words).stderr.startswith("headway eval: ")


def test_an_unknown_method(trained: Path, sample: Path) -> None:
    found = run(trained, "--quantize", "magic", "--text", sample)
    assert found.exit_code == 2
    assert "Choose one of int8" in found.stderr


def test_an_encoder_is_refused(sample: Path, tmp_path: Path) -> None:
    from tests.artifacts.model_files import write_folder

    home = write_folder(tmp_path / "encoder")
    config = json.loads((home / "config.json").read_text())
    (home / "config.json").write_text(json.dumps(config | {"model_type": "bert", "architectures": ["BertModel"]}))
    found = run(home, "--text", sample)
    assert found.exit_code == 2
    assert "is an encoder" in found.stderr


def test_quantize_and_evaluate_in_one_command(trained: Path, sample: Path, tmp_path: Path) -> None:
    home = tmp_path / "packed"
    found = run(trained, "--quantize", "int8", "--output", home, "--text", sample, "--dtype", "float32", "--json")
    answer = json.loads(found.stdout)
    assert (answer["model"], answer["against"]) == (str(home), str(trained))
    assert (home / "model.safetensors").exists() or list(home.glob("*.safetensors"))
    assert 0 < answer["comparison"]["kl"]["mean"] < 0.05
    assert found.exit_code == {"pass": 0, "fail": 1, "cannot_tell": 2}[answer["verdict"]]
    assert abs(answer["comparison"]["judgements"][0]["worse"]) < 0.02


@pytest.mark.parametrize(("written", "value"), [("1%", 0.01), ("1.5 %", 0.015), ("0.02", 0.02)])
def test_shares(written: str, value: float) -> None:
    assert share(written) == pytest.approx(value)


@pytest.mark.parametrize("written", ["1", "2", "0", "100%", "x", "-1%"])
def test_shares_that_are_none(written: str) -> None:
    with pytest.raises(ConfigError):
        share(written)


def test_the_default_folder() -> None:
    assert eval_quantize.default_folder("owner/name", eval_quantize.METHODS["int8"]) == Path("name-int8")
