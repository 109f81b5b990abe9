"""Environment variables of vLLM."""

from __future__ import annotations

from headway.server.environment import idle_variables, unknown_variables


def test_unknown_names_draw_the_nearest_known_one() -> None:
    found = unknown_variables({"VLLM_LOGING_LEVEL": "DEBUG", "VLLM_API_KEY": "secret", "VLLM_QQQQ": "1", "OTHER": "1"})
    assert found == [
        "Unknown vLLM environment variable detected: VLLM_LOGING_LEVEL. Did you mean VLLM_LOGGING_LEVEL?",
        "Unknown vLLM environment variable detected: VLLM_QQQQ",
    ]


def test_variables_of_the_runtime_and_the_router_are_theirs() -> None:
    assert unknown_variables({"VLLM_SRUN_API_KEY": "x", "VLLM_SR_ANYTHING": "x"}) == []


def test_known_names_without_effect_are_told_unless_they_switch_off() -> None:
    found = idle_variables({"VLLM_USE_V1": "1", "VLLM_PORT": "9", "VLLM_BATCH_INVARIANT": "0", "VLLM_LOGGING_LEVEL": "INFO"})
    assert found == [
        "VLLM_PORT is set and has no effect: it never was the API port; use --port",
        "VLLM_USE_V1 is set and has no effect: there is one engine",
    ]
