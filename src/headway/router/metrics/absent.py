"""Families that vLLM-SR exposes and Headway does not, because what they count is not here. The documentation is printed from this table."""

from __future__ import annotations

from typing import NamedTuple


class Absent(NamedTuple):
    """`names` with `*` at the end stands for all that begin so."""

    names: str
    why: str


ABSENT: tuple[Absent, ...] = (
    Absent("llm_memory_*", "There is no long-term memory; the plugin `memory` is refused."),
    Absent("llm_looper_attempt_*", "Times and tokens of a cascade's calls are in those of their models; `x-vsr-model-usage` tells them of one request."),
    Absent("llm_looper_execution_*", "As above; `x-vsr-looper-latency-ms` tells it of one request."),
    Absent("llm_cache_warmth_*", "The router does not guess what is in a backend's cache."),
    Absent("llm_model_feedback_*", "Nothing is learned from answers while the router runs."),
    Absent("llm_complexity_*", "Verdicts are matches of rules: `llm_signal_match_total`."),
    Absent("llm_remote_connector_*", "There are no classifiers of other services."),
    Absent("sr_request_params_completion_floor_*", "request_params raises no limit."),
    Absent("sr_request_params_upstream_session_*", "Backends are not told of sessions."),
    Absent("vsr_token_calibration_*", "Estimates are a quarter of the bytes, whatever `vsr_token_estimation_error_pct` says."),
)
