"""Environment variables of vLLM."""

from __future__ import annotations

from pathlib import Path

from headway.flags.environment import KNOWN, idle_variables, unknown_variables

SOURCE = Path(__file__).parents[2] / "src"


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


# Contract: the variables of vLLM 0.32 that matter for an engine.
_NAMED = """VLLM_HOST_IP VLLM_PORT VLLM_API_KEY VLLM_LOGGING_LEVEL VLLM_LOGGING_PREFIX VLLM_LOGGING_CONFIG_PATH VLLM_CONFIGURE_LOGGING
VLLM_LOG_STATS_INTERVAL VLLM_TRACE_FUNCTION VLLM_CACHE_ROOT VLLM_CONFIG_ROOT VLLM_ENGINE_READY_TIMEOUT_S VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS
VLLM_HTTP_TIMEOUT_KEEP_ALIVE VLLM_CPU_KVCACHE_SPACE VLLM_CPU_OMP_THREADS_BIND VLLM_CPU_NUM_OF_RESERVED_CPU VLLM_CPU_ATTN_SPLIT_KV
VLLM_CPU_INT4_W4A8 VLLM_WORKER_MULTIPROC_METHOD VLLM_ENABLE_V1_MULTIPROCESSING VLLM_SERVER_DEV_MODE VLLM_ALLOW_LONG_MAX_MODEL_LEN
VLLM_ALLOW_RUNTIME_LORA_UPDATING VLLM_USE_MODELSCOPE VLLM_PLUGINS VLLM_NCCL_SO_PATH VLLM_SKIP_P2P_CHECK VLLM_PP_LAYER_PARTITION VLLM_DP_RANK
VLLM_DP_SIZE VLLM_DP_MASTER_IP VLLM_DP_MASTER_PORT VLLM_KV_CACHE_LAYOUT VLLM_BATCH_INVARIANT VLLM_FLOAT32_MATMUL_PRECISION
VLLM_MAX_N_SEQUENCES VLLM_MAX_STOP_STRINGS VLLM_MAX_COMPLETION_PROMPTS VLLM_NO_USAGE_STATS VLLM_DO_NOT_TRACK VLLM_KEEP_ALIVE_ON_ENGINE_DEATH
VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT VLLM_REGEX_COMPILATION_TIMEOUT_S VLLM_USE_V1 VLLM_ATTENTION_BACKEND"""
CONTRACT = _NAMED.split()


def test_every_variable_of_the_contract_works_or_says_why_not() -> None:
    assert unknown_variables(dict.fromkeys(CONTRACT, "1")) == []
    silent = [name for name in CONTRACT if not idle_variables({name: "1"})]
    assert silent == [name for name in CONTRACT if KNOWN[name].effect == "used"]
    assert all(known.note for known in KNOWN.values() if known.effect != "used")


def test_used_variables_are_read_somewhere() -> None:
    source = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "environment.py")
    assert [name for name, known in KNOWN.items() if known.effect == "used" and f'"{name}"' not in source] == []


def test_a_service_of_kubernetes_is_no_mistake_of_the_user() -> None:
    """A Service called vllm puts these into every container, VLLM_PORT with an address in it."""
    links = {
        "VLLM_PORT": "tcp://10.0.0.7:8000", "VLLM_SERVICE_HOST": "10.0.0.7", "VLLM_SERVICE_PORT": "8000", "VLLM_SERVICE_PORT_HTTP": "8000",
        "VLLM_PORT_8000_TCP": "tcp://10.0.0.7:8000", "VLLM_PORT_8000_TCP_ADDR": "10.0.0.7", "VLLM_CHAT_SERVICE_HOST": "10.0.0.8",
        "VLLM_CHAT_PORT": "tcp://10.0.0.8:8000",
    }  # fmt: skip
    assert unknown_variables(links) == []
    (said,) = idle_variables(links)
    assert said.startswith("Kubernetes describes a Service called vllm in 8 variable(s), such as VLLM_CHAT_PORT: they have no effect")
    assert "enableServiceLinks: false" in said
    assert unknown_variables({"VLLM_CHAT_PORT": "8000"}) != [], "a number is somebody's mistake"
