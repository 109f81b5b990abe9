from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.inspect import card_fields, inspect_command
from headway.host.memory_budget import MemoryBudget
from tests.artifacts.model_files import LLAMA_CONFIG, write_folder, write_gguf
from tests.models.fallback_models import fallback_model
from tests.models.tiny_models import tiny_model


def test_text_names_what_matters(tmp_path: Path) -> None:
    result = CliRunner().invoke(inspect_command, [str(write_gguf(tmp_path / "m.gguf"))])
    assert result.exit_code == 0
    for part in ("LlamaForCausalLM", "256 tokens", "gguf", "F32", "128 bytes per token", "fits"):
        assert part in result.stdout


def test_json_is_one_object_with_the_same_facts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", shards=2, config={**LLAMA_CONFIG, "auto_map": {"AutoModel": "x.Y"}})
    result = CliRunner().invoke(inspect_command, [str(folder), "--json"])
    fields = json.loads(result.stdout)
    assert (fields["architecture"], fields["context_length"], len(fields["files"])) == ("LlamaForCausalLM", 128, 2)
    assert fields["fits"]["fits"] is True
    assert fields["fits"]["kv_bytes_per_token"] == 2 * 2 * 2 * 8 * 2
    assert "auto_map" in fields["problems"][0]


def inspected(folder: Path) -> tuple[dict[str, str], str]:
    result = CliRunner().invoke(inspect_command, [str(folder), "--json"])
    return json.loads(result.stdout)["runs"], CliRunner().invoke(inspect_command, [str(folder)]).stdout


def test_who_runs_it_and_why_not(tmp_path: Path) -> None:
    assert inspected(tiny_model("llama", tmp_path).folder)[0] == {"by": "native"}
    runs, text = inspected(fallback_model("gemma", tmp_path).folder)
    assert runs == {"by": "fallback"}
    assert "through transformers" in text
    runs, text = inspected(write_folder(tmp_path / "m", config={**LLAMA_CONFIG, "architectures": ["MambaForCausalLM"], "model_type": "mamba"}))
    assert (runs["by"], runs["reason"]) == ("refused", "unsupported_architecture")
    assert "recurrent state" in runs["why"]
    assert "recurrent state" in text
    assert inspected(write_folder(tmp_path / "half"))[0]["reason"] == "missing_tensor"


def test_the_cache_is_that_of_who_runs_it(tmp_path: Path) -> None:
    """Keys of latent attention are wider than the head_dim of its configuration."""
    model = fallback_model("deepseek3", tmp_path)
    fields = json.loads(CliRunner().invoke(inspect_command, [str(model.folder), "--json"]).stdout)
    config = fields["config"]
    widest = max(config["qk_nope_head_dim"] + config["qk_rope_head_dim"], config["v_head_dim"])
    kept = 2 * config["num_hidden_layers"] * config["num_attention_heads"] * widest * 2
    assert widest > config["head_dim"]
    assert fields["fits"]["kv_bytes_per_token"] == kept


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_errors_are_one_line_with_reason_and_exit_code_1(tmp_path: Path, flags: list[str]) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\nsize 5\n")
    result = CliRunner().invoke(inspect_command, [str(path), *flags])
    assert result.exit_code == 1
    assert result.stderr.strip().count("\n") == 0
    assert "[lfs_pointer]" in result.stderr
    assert "git lfs pull" in result.stderr
    if flags:
        assert json.loads(result.stdout)["error"]["reason"] == "lfs_pointer"


def test_a_model_that_does_not_fit_says_why(tmp_path: Path) -> None:
    from headway.artifacts.inspect import inspect

    card = inspect(str(write_folder(tmp_path)))
    small = MemoryBudget(1000, 1000, 1000, "the machine")
    assert "weights need" in card_fields(card, small)["fits"]["verdict"]
    tight = MemoryBudget(1 << 20, 1 << 20, 10_000, "the machine")
    assert card_fields(card, tight)["fits"]["fits"] is False
    some = MemoryBudget(1 << 20, 1 << 20, 50_000, "the machine")
    assert card_fields(card, some)["fits"]["verdict"].startswith("with --max-model-len")
