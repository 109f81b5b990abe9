from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import pytest
from click.testing import CliRunner, Result

from headway.cli.inspect import inspect_command
from headway.cli.plan import plan_command
from headway.cli.plan_words import _WORDS, LANGUAGES
from headway.host.host_roofs import HostRoofs, host_key, keep_host_roofs
from headway.kernels.integer_reference import reference_integers
from headway.kernels.torch_backend import TORCH
from tests.artifacts.model_files import write_folder, write_gguf
from tests.capacity.shapes import LLAMA
from tests.models.tiny_gguf import write_gguf as write_quantized
from tests.models.tiny_models import CONFIGS, make_tiny_model

GIVEN = ("--bandwidth", "42GB/s", "--flops", "0.87T")


def run(*words: str) -> Result:
    result = CliRunner().invoke(plan_command, words)
    assert not isinstance(result.exception, AssertionError), result.exception
    return result


def answer(*words: str, code: int = 0) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def reason(*words: str) -> str:
    result = run(*words, "--json")
    assert result.exit_code == 2, result.output
    return str(json.loads(result.stdout)["error"]["reason"])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"architectures": ["LlamaForCausalLM"]}))
    return path


def test_the_guides_example_comes_out_right() -> None:
    found = answer("--params", "70B", "--device", "a100-40gb", "--max-model-len", "4096", code=1)
    formats = {row["name"]: row for row in found["formats"]}
    assert (formats["bf16"]["bytes"], formats["awq"]["nominal_bytes"]) == (140_000_000_000, 35_000_000_000)
    assert "4 x a100-40gb" in found["verdict"]
    assert found["command"] == "vllm serve MODEL --tensor-parallel-size 4 --max-model-len 4096"
    llama = answer("llama-2-70b", "--device", "a100-40gb", "--quantization", "awq", "--gpu-memory-utilization", "0.95")
    assert llama["fits"]
    assert "--gpu-memory-utilization 0.95" in llama["command"]


def test_a_configuration_alone_is_enough(config: Path) -> None:
    for reference in (config, config.parent):
        found = answer(str(reference), *GIVEN)
        assert found["model"]["parameters"] == 2 * (64 * 64 * 2 + 64 * 16 * 2 + 3 * 64 * 176 + 2 * 64) + 64 + 2 * 64 * 1000
        assert found["memory"]["kv_bytes_per_token"] in (2 * 2 * 2 * 8 * 2, 2 * 2 * 2 * 8 * 4)  # of --dtype auto
        assert answer(str(reference), *GIVEN, "--dtype", "bfloat16")["memory"]["weights_bytes"] == 2 * found["model"]["parameters"]
        assert "configuration alone" in found["notes"][0]
        assert found["fits"]


def test_headers_say_more_than_the_configuration(tmp_path: Path) -> None:
    found = answer(str(write_folder(tmp_path / "model")), *GIVEN)
    assert found["model"]["stored_bytes"] > 0
    assert found["notes"] == []
    packed = answer(str(write_gguf(tmp_path / "model.gguf")), *GIVEN)
    assert packed["model"]["stored_types"]


def test_memory_adds_up_and_ceilings_follow(config: Path) -> None:
    found = answer(str(config), *GIVEN, "--concurrency", "4", "--max-model-len", "1024")
    memory = found["memory"]
    assert memory["need_bytes"] == sum(memory[key] for key in ("weights_bytes", "kv_cache_bytes", "activation_bytes", "process_bytes"))
    assert memory["free_bytes"] == memory["budget_bytes"] - memory["need_bytes"]
    assert memory["kv_cache_bytes"] == (4 * 64 + 1) * 16 * memory["kv_bytes_per_token"]
    assert found["command"] == f"headway serve {config} --max-model-len 1024 --max-num-seqs 4 --kv-cache-memory-bytes {memory['kv_cache_bytes']}"
    assert found["ceilings"]["origin"] == "given"
    assert found["ceilings"]["bandwidth_bytes_per_second"] == 42e9


def test_no_figures_without_a_measurement(config: Path) -> None:
    assert answer(str(config), "--no-measure")["ceilings"] is None


def test_kept_figures_are_used(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    keep_host_roofs(HostRoofs(host_key(), 2, 0, 5e9, 5e9, {"bf16": 1e12, "fp32": 5e11, "int8": 2e12}, False), tmp_path / "cache")
    found = answer(str(config), "--dtype", "bfloat16")
    assert found["ceilings"]["flops_per_second"] == 1e12
    assert found["ceilings"]["bandwidth_bytes_per_second"] == 5e9
    assert any("beside other load" in note for note in found["notes"])
    assert answer(str(config), "--dtype", "float32")["ceilings"]["flops_per_second"] == 5e11


def test_what_runs_on_a_card_and_which_card_runs_a_model_agree() -> None:
    card = answer("--device", "rtx4090")
    models = {row["model"] for row in card["models"]}
    assert "llama-3.1-8b" in models
    assert {"llama-3.3-70b", "deepseek-v3"} <= set(card["too_large"])
    for name in ("llama-3.1-8b", "qwen2.5-72b"):
        back = answer(name, "--which-device", "--tensor-parallel-size", "1")
        assert ("rtx4090" in {row["device"] for row in back["devices"]}) == (name in models)


def test_several_cards_divide_the_heads() -> None:
    found = answer("qwen2.5-7b", "--device", "rtx4090")
    assert [(row["size"], row["runs"]) for row in found["tensor_parallel"]] == [(1, True), (2, True), (4, True), (7, False)]
    wrong = answer("qwen2.5-7b", "--device", "rtx4090", "--tensor-parallel-size", "3", code=1)
    assert "attention heads (28) must be divisible by tensor parallel size (3)" in wrong["verdict"]


def test_a_cache_in_eight_bits_holds_twice_as_much() -> None:
    plain, packed = (answer("llama-3.1-8b", "--device", "l4", "--max-model-len", "4096", *more) for more in ((), ("--kv-cache-dtype", "fp8")))
    assert packed["memory"]["kv_bytes_per_token"] * 2 == plain["memory"]["kv_bytes_per_token"]
    assert packed["concurrency"] >= 2 * plain["concurrency"]
    assert packed["command"].endswith("--kv-cache-dtype fp8")


def test_a_device_of_ones_own() -> None:
    found = answer("llama-3.1-8b", "--memory", "24GiB", "--bandwidth", "1TB/s", "--flops", "100T", "--max-model-len", "4096")
    assert found["device"]["memory_bytes"] == 24 << 30
    assert found["ceilings"]["decode_tokens_per_second_alone"] < 1e12 / 15e9


def test_a_larger_model_than_the_machine_says_so() -> None:
    found = answer("deepseek-v3", "--no-measure", code=1)
    assert not found["fits"]
    assert found["command"] is None
    assert "weights take" in found["verdict"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "invalid_config"), (("--which-device", "--device", "l4"), "invalid_config"), (("llama-2-7b", "--params", "7B"), "invalid_config"),
        (("--params", "many"), "invalid_config"), (("--device", "abacus"), "unknown_device"), (("llama-2-7b", "--tensor-parallel-size", "2"), "not_built"),
        (("llama-2-7b", "--kv-cache-dtype", "fp8"), "not_built"), (("llama-2-7b", "--quantization", "awq"), "not_built"),
        (("llama-2-7b", "--quantization", "magic"), "invalid_config"), (("llama-2-7b", "--max-model-len", "0"), "invalid_config"),
        (("llama-2-7b", "--max-model-len", "5000", "--no-measure"), "max_model_len_too_long"), (("llama-2-7b", "--concurrency", "-1"), "invalid_config"),
        (("llama-2-7b", "--gpu-memory-utilization", "1.5"), "invalid_config"), (("llama-2-7b", "--memory", "24GiB"), "invalid_config"),
        (("llama-2-7b", "--memory", "24GiB", "--device", "l4"), "invalid_config"), (("sparrow-nano", "--device", "l4"), "invalid_config"),
        (("./nowhere",), "missing_file"), (("./nowhere.json",), "missing_file"), (("no-such-model",), "unknown_model"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_has_a_reason(words: tuple[str, ...], expected: str) -> None:
    assert reason(*words) == expected


def test_a_question_that_cannot_be_answered_ends_with_its_own_code() -> None:
    result = run("no-such-model")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("headway plan: 'no-such-model' is no folder")


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_screen_in_both_languages(config: Path, language: str) -> None:
    result = run(str(config), *GIVEN, "--lang", language)
    assert result.exit_code == 0
    assert "█" in result.stdout or "░" in result.stdout
    assert len(result.stdout.splitlines()) <= 24
    assert ("可以运行" in result.stdout) == (language == "zh")
    card = run("qwen2.5-7b", "--device", "rtx4090", "--lang", language).stdout
    assert len(card.splitlines()) <= 24
    assert "4 key-value heads" in card
    assert run("--device", "l4", "--lang", language).exit_code == 0


def test_every_word_is_there_twice() -> None:
    assert all(len(pair) == 2 and all(pair) for pair in _WORDS.values())


def test_nothing_heavy_is_imported_without_a_measurement(config: Path) -> None:
    program = (
        "import sys; from headway.cli.main import run\n"
        "try: run('headway', sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'transformers', 'httpx', 'huggingface_hub') if name in sys.modules])"
    )
    for words in ([str(config)], ["llama-3.1-8b", "--device", "l4"], ["--device", "l4"]):
        done = subprocess.run([sys.executable, "-c", program, "plan", *words, "--no-measure"], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", words


def test_integers_that_the_kernels_keep_are_not_planned_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_quantized(make_tiny_model("smollm", CONFIGS["smollm"](), tmp_path), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    words = (str(tmp_path / "m.gguf"), "--dtype", "bfloat16", *GIVEN)
    monkeypatch.setattr("headway.models.loaded_shape.engine_kernels", lambda dtype: TORCH)
    unpacked = answer(*words)
    monkeypatch.setattr("headway.models.loaded_shape.engine_kernels", lambda dtype: replace(TORCH, integers=reference_integers()))
    kept = answer(*words)
    assert "unpacks GGUF weights to 16 bits" in unpacked["notes"][0]
    assert "as integers of 9.00 bits" in kept["notes"][0]
    assert kept["memory"]["weights_bytes"] < 0.75 * unpacked["memory"]["weights_bytes"]
    assert kept["ceilings"]["decode_tokens_per_second_alone"] > 1.5 * unpacked["ceilings"]["decode_tokens_per_second_alone"]
    assert inspected(tmp_path / "m.gguf") == kept["memory"]["weights_bytes"]


def inspected(path: Path) -> int:
    found = json.loads(CliRunner().invoke(inspect_command, [str(path), "--json"]).stdout)
    return int(found["fits"]["weight_bytes_loaded"])
