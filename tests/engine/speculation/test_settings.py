"""--speculative-config, its short forms, and the old spellings."""

from __future__ import annotations

from typing import Any

import pytest

from headway.cli.serve_config import serve_config
from headway.engine.config import EngineConfig
from headway.engine.speculation.settings import SpeculationSettings, speculation_settings
from headway.errors import ConfigError, NotBuiltError


def flags(*words: str) -> tuple[SpeculationSettings | None, list[str]]:
    said: list[str] = []
    return serve_config(["m", *words], {}, said.append).engine.speculation, said


def test_all_spellings_say_the_same() -> None:
    want = SpeculationSettings("ngram", 3, prompt_lookup_min=2, prompt_lookup_max=4)
    json = '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4, "prompt_lookup_min": 2}'
    dotted = ["--speculative-config.prompt_lookup_max", "4", "--speculative-config.prompt_lookup_min", "2"]
    for words in (
        ["--speculative-config", json],
        ["-sc", json],
        ["--speculative-config.method", "ngram", "--speculative-config.num_speculative_tokens", "3", *dotted],
        ["--spec-method", "ngram", "--spec-tokens", "3", *dotted],
    ):
        assert flags(*words) == (want, [])
    old = ["--speculative-model", "[ngram]", "--num-speculative-tokens", "3", "--ngram-prompt-lookup-max", "4", "--ngram-prompt-lookup-min", "2"]
    found, said = flags(*old)
    assert found == want
    assert len(said) == 4
    assert "--num-speculative-tokens was renamed to --spec-tokens" in said
    assert "--ngram-prompt-lookup-max was renamed to --speculative-config.prompt_lookup_max" in said


def test_off_by_default_and_completed_where_little_is_said() -> None:
    assert EngineConfig("m").speculation is None
    assert EngineConfig("m", spec_model="small").speculation == SpeculationSettings("draft_model", 5, model="small")
    assert EngineConfig("m", spec_method="ngram").speculation == SpeculationSettings("ngram", 5)
    assert speculation_settings({"method": "ngram", "prompt_lookup_max": 3}) == SpeculationSettings("ngram", 5, prompt_lookup_max=3, prompt_lookup_min=3)
    assert speculation_settings({"method": "suffix", "enforce_eager": True, "draft_tensor_parallel_size": 1}) == SpeculationSettings("suffix", 24)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"num_speculative_tokens": 3}, ConfigError, "method must be one of ngram, suffix, draft_model; none is given"),
        ({"method": "nrgam"}, ConfigError, "got 'nrgam'"),
        ({"method": "eagle3", "model": "m"}, NotBuiltError, "method eagle3 is not built"),
        ({"method": "draft_model"}, ConfigError, "needs a model"),
        ({"method": "ngram", "model": "m"}, ConfigError, "takes no model"),
        ({"method": "ngram", "num_speculative_tokens": 0}, ConfigError, "num_speculative_tokens in --speculative-config must be 1 to 64, got 0"),
        ({"method": "ngram", "num_speculative_tokens": "3"}, ConfigError, "must be 1 to 64, got '3'"),
        ({"method": "ngram", "num_speculative_tokens": True}, ConfigError, "must be 1 to 64, got True"),
        ({"method": "ngram", "prompt_lookup_min": 4, "prompt_lookup_max": 2}, ConfigError, "is above"),
        ({"method": "suffix", "prompt_lookup_min": 4}, ConfigError, "belongs to the speculation method ngram"),
        ({"method": "ngram", "num_speculative_token": 2}, ConfigError, "Did you mean 'num_speculative_tokens'"),
        ({"method": "ngram", "adaptive": 1}, ConfigError, "adaptive in --speculative-config must be a bool"),
        ({"method": "ngram", "draft_tensor_parallel_size": 2}, NotBuiltError, "draft_tensor_parallel_size"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        speculation_settings(given)


def test_contradictions() -> None:
    with pytest.raises(ConfigError, match="--spec-tokens says 4, --speculative-config says 3"):
        EngineConfig("m", speculative_config={"method": "ngram", "num_speculative_tokens": 3}, spec_tokens=4)
    with pytest.raises(ConfigError, match="exclude each other"):
        EngineConfig("m", spec_method="ngram", logits_processors=("a:B",))
    with pytest.raises(ConfigError, match="must be a JSON object"):
        EngineConfig("m", speculative_config=[1])  # type: ignore[arg-type]
