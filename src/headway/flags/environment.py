"""The VLLM_* environment variables that Headway knows, and the warning for those that nobody knows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

Effect = Literal["used", "none", "not built", "removed"]
_OTHER_PROGRAMS = ("VLLM_SRUN_", "VLLM_SR_")  # read by the runtime and the router


class Known(NamedTuple):
    """`effect` of setting the variable here; `note` says what to use instead or why nothing happens."""

    effect: Effect
    note: str = ""


_USED = Known("used")
_LATER = Known("not built", "this version has no feature behind it")
_THREADS = Known("not built", "bind the process with taskset or cpuset; OMP_NUM_THREADS sets the number of threads")
_ONE_PROCESS = Known("none", "there is one process")
_NO_GPU = Known("none", "it concerns GPUs")

KNOWN: Mapping[str, Known] = {
    # read here, in telemetry, in the engine or in wire
    "VLLM_API_KEY": _USED,
    "VLLM_LOGGING_LEVEL": _USED,
    "VLLM_LOGGING_PREFIX": _USED,
    "VLLM_LOGGING_STREAM": _USED,
    "VLLM_LOGGING_CONFIG_PATH": _USED,
    "VLLM_CONFIGURE_LOGGING": _USED,
    "VLLM_LOG_STATS_INTERVAL": _USED,
    "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": _USED,
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": _USED,
    "VLLM_SERVER_DEV_MODE": _USED,
    "VLLM_ENABLE_RESPONSES_API_STORE": _USED,
    "VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT": _USED,
    "VLLM_CPU_KVCACHE_SPACE": _USED,
    "VLLM_TRACE_FUNCTION": _USED,
    "VLLM_MAX_N_SEQUENCES": _USED,
    "VLLM_MAX_STOP_STRINGS": _USED,
    "VLLM_MAX_COMPLETION_PROMPTS": _USED,
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": _USED,
    "VLLM_BATCH_INVARIANT": _USED,
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": _USED,
    # nothing to switch
    "VLLM_PORT": Known("none", "it never was the API port; use --port"),
    "VLLM_HOST_IP": _USED,  # with several nodes
    "VLLM_NIXL_SIDE_CHANNEL_HOST": Known("none", "use kv_ip of --kv-transfer-config"),
    "VLLM_NIXL_SIDE_CHANNEL_PORT": Known("none", "use kv_port of --kv-transfer-config"),
    "VLLM_NIXL_ABORT_REQUEST_TIMEOUT": Known("none", "use kv_lease_duration in kv_connector_extra_config of --kv-transfer-config"),
    "VLLM_CACHE_ROOT": Known("none", "use HEADWAY_CACHE"),
    "VLLM_CONFIG_ROOT": Known("none", "there is no folder of configurations"),
    "VLLM_ENGINE_READY_TIMEOUT_S": _ONE_PROCESS,
    "VLLM_WORKER_MULTIPROC_METHOD": _ONE_PROCESS,
    "VLLM_ENABLE_V1_MULTIPROCESSING": _ONE_PROCESS,
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": Known("none", "the server stays up; --exit-on-engine-death ends it"),
    "VLLM_NO_USAGE_STATS": Known("none", "Headway reports to nobody"),
    "VLLM_DO_NOT_TRACK": Known("none", "Headway reports to nobody"),
    "VLLM_NCCL_SO_PATH": _NO_GPU,
    "VLLM_SKIP_P2P_CHECK": _NO_GPU,
    "VLLM_FLOAT32_MATMUL_PRECISION": _NO_GPU,
    "VLLM_KV_CACHE_LAYOUT": Known("none", "there is one layout"),
    "VLLM_CPU_ATTN_SPLIT_KV": Known("none", "there is one attention kernel"),
    "VLLM_CPU_INT4_W4A8": Known("none", "there is one kernel for quantized weights"),
    "VLLM_PLUGINS": Known("none", "there are no plug-ins"),
    # to come
    "VLLM_CPU_OMP_THREADS_BIND": _THREADS,
    "VLLM_CPU_NUM_OF_RESERVED_CPU": _THREADS,
    "VLLM_USE_MODELSCOPE": _LATER,
    "VLLM_PP_LAYER_PARTITION": _LATER,
    "VLLM_DP_RANK": _LATER,
    "VLLM_DP_SIZE": _LATER,
    "VLLM_DP_MASTER_IP": _LATER,
    "VLLM_DP_MASTER_PORT": _LATER,
    "VLLM_REGEX_COMPILATION_TIMEOUT_S": _LATER,
    # gone from vLLM itself
    "VLLM_USE_V1": Known("removed", "there is one engine"),
    "VLLM_ATTENTION_BACKEND": Known("removed", "use --attention-backend"),
}

_OFF = ("", "0", "false", "False")


# What Kubernetes puts into every container for a Service called vllm or vllm-something.
_SERVICE_LINK = re.compile(r"VLLM_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "") not in _OFF


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each VLLM_* variable that nobody knows, with the nearest known name. No values."""
    out = []
    for name in sorted(environment):
        ours = name.startswith("VLLM_") and not name.startswith(_OTHER_PROGRAMS)
        if ours and name not in KNOWN and not _is_service_link(name, environment[name]):
            near = difflib.get_close_matches(name, KNOWN, 1)
            out.append(
                f"Unknown vLLM environment variable detected: {name}" + (f". Did you mean {near[0]}?" if near else "")
            )
    return out


def idle_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each known variable that is set and changes nothing here, one for all that Kubernetes sets."""
    links = [name for name, value in environment.items() if _is_service_link(name, value)]
    idle = [
        f"{name} is set and has no effect: {known.note}"
        for name, known in KNOWN.items()
        if known.effect != "used" and is_on(environment, name) and name not in links
    ]
    if links:
        idle.append(
            f"Kubernetes describes a Service called vllm in {len(links)} variable(s), such as {min(links)}: they have no effect. Another "
            "name of the Service, or enableServiceLinks: false in the pod, takes them away"
        )
    return idle


def _is_service_link(name: str, value: str) -> bool:
    of_a_port = name.startswith("VLLM_") and name.endswith("_PORT") and _ADDRESS.match(value) is not None
    return of_a_port or _SERVICE_LINK.fullmatch(name) is not None
