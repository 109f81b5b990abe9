"""Every metric family of the router, as one table. `registry` keeps them, the documentation is printed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

REQUEST_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
STAGE_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SHARES = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
PERCENTS = (-50, -30, -20, -10, -5, 0, 5, 10, 20, 30, 50, 100)
TOKENS = (16, 64, 256, 1024, 4096, 16384, 65536, 262144)
COSTS = (0.00001, 0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
ANSWER_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


@dataclass(frozen=True, slots=True)
class Family:
    """`name` as exposed, without `_total`, which the text format adds to counters. Label values are always bounded: names from the
    configuration or words from a fixed list, never something that a client sends."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


FAMILIES: tuple[Family, ...] = (
    # requests
    Family("llm_model_requests", "counter", "Requests by the model that was selected.", ("model",)),
    Family("llm_request_errors", "counter", "Requests that ended in an error, by model and reason.", ("model", "reason")),
    Family("llm_request_outcomes", "counter", "Requests by how their answer came about.", ("path",)),
    Family("llm_request_duration_seconds", "histogram", "From the request's head to the end of its answer.", ("path",), ANSWER_SECONDS),
    Family("llm_entrypoint_requests", "counter", "Routed requests by the name that they asked for.", ("entrypoint",)),
    Family("llm_recipe_selections", "counter", "Routed requests by recipe.", ("recipe",)),
    Family("llm_routing_stage_duration_seconds", "histogram", "Time of one stage of routing.", ("stage",), STAGE_SECONDS),
    Family(
        "llm_model_routing_modifications", "counter", "Requests that another model answered than the name that they asked for; that of routing counts too.",
        ("source_model", "target_model"),
    ),
    Family("llm_model_routing_latency_seconds", "histogram", "Signals, decisions and selection of one request.", (), STAGE_SECONDS),
    Family("llm_model_prompt_tokens", "counter", "Prompt tokens as backends counted them.", ("model",)),
    Family("llm_model_completion_tokens", "counter", "Generated tokens as backends counted them.", ("model",)),
    Family("llm_model_tokens", "counter", "Prompt and generated tokens as backends counted them.", ("model",)),
    Family("llm_model_cost", "counter", "Cost of answers by the configured prices; of streams that were cut an estimate.", ("model", "currency")),
    Family("llm_translation_lossy", "counter", "Requests of which a translation to chat completions lost something, by protocol.", ("protocol",)),
    Family("llm_session_model_transitions", "counter", "Turns of a session that another model answered than the turn before.", ("from_model", "to_model")),
    Family("llm_session_turn_prompt_tokens", "histogram", "Prompt tokens of one turn of a session, as backends counted them.", ("model", "domain"), TOKENS),
    Family("llm_session_turn_completion_tokens", "histogram", "Generated tokens of one turn of a session.", ("model", "domain"), TOKENS),
    Family("llm_session_turn_cost", "histogram", "Cost of one turn of a session, where the model has a price.", ("model", "domain", "currency"), COSTS),
    Family(
        "vsr_token_estimation_error_pct", "histogram",
        "Estimated prompt tokens less those that the backend counted, in percent of the latter, by what the estimate was made for: signal, requirements, budget. It may be negative, so there is no sum.",
        ("category",), PERCENTS,
    ),
    Family("headway_token_counts", "counter", "Answers of count_tokens, by who counted: backend, estimate.", ("source",)),
    Family("headway_key_tokens", "counter", "Prompt and generated tokens by the name of the API key; of streams that were cut an estimate.", ("key",)),
    Family("headway_key_spend", "counter", "Cost by the name of the API key.", ("key", "currency")),
    # signals and decisions
    Family("llm_signal_extraction", "counter", "Rules of signals that were evaluated.", ("signal_type",)),
    Family(
        "llm_signal_extraction_latency_seconds", "histogram", "Time of the rules of one type of signal, of those that ask models their waiting included.",
        ("signal_type",), STAGE_SECONDS,
    ),
    Family("llm_signal_match", "counter", "Rules of signals that matched.", ("signal_type", "signal_name")),
    Family("llm_routing_reason_codes", "counter", "Rules without an answer, or with content that was not read, by why.", ("reason",)),
    Family("llm_pii_violations", "counter", "Types of personal data that rules found and do not allow.", ("pii_type",)),
    Family("llm_projection_score", "histogram", "Scores of projections.", ("recipe", "projection"), SHARES),
    Family("llm_decision_evaluation_latency_seconds", "histogram", "Time of evaluating all decisions of a recipe.", (), STAGE_SECONDS),
    Family("llm_decision_evaluation", "counter", "Decisions that were evaluated.", ("recipe",)),
    Family("llm_decision_confidence", "histogram", "Confidence of the decision that won, where one condition alone gave it.", ("recipe", "decision"), SHARES),
    Family("llm_decision_match", "counter", "Routed requests by the decision that won.", ("recipe", "decision")),
    # backends
    Family("llm_model_ttft_seconds", "histogram", "From asking a model to the first bytes of its stream.", ("model",), ANSWER_SECONDS),
    Family("llm_model_tpot_seconds", "histogram", "Time per token after the first; of answers in one piece, per token.", ("model",), STAGE_SECONDS),
    Family("llm_model_completion_latency_seconds", "histogram", "From asking a model to the end of its answer.", ("model",), ANSWER_SECONDS),
    Family("llm_model_inflight_requests", "gauge", "Requests that a model is answering now.", ("model",)),
    Family("vsr_upstream_attempts", "counter", "Tries by backend and how they ended; one that broke after it began well is counted as both.", ("model", "backend", "outcome")),
    Family("headway_prefills", "counter", "Prompts given to prefill engines (prefill_refs), by engine and how that ended: ok, nothing_kept, resting, or what failed.", ("model", "backend", "outcome")),
    Family("vsr_upstream_ejections", "counter", "Backends that consecutive failures took out for a time.", ("model", "backend")),
    Family("vsr_upstream_waiting_requests", "gauge", "Requests that wait for a place at the backend now.", ("model", "backend")),
    Family("llm_reasoning_decisions", "counter", "Requests whose decision set the reasoning of a model: on, off.", ("model", "reasoning")),
    Family(
        "llm_reasoning_template_usage", "counter", "Fields for reasoning that went into requests to backends, by the model's reasoning family.", ("family", "param")
    ),
    Family("llm_reasoning_effort_usage", "counter", "Requests whose decision named an effort.", ("model", "effort")),
    # selection
    Family("llm_model_selection", "counter", "Models chosen by selection algorithms.", ("method", "model")),
    Family("llm_model_selection_fallback", "counter", "Choices that an algorithm could not make, by why.", ("method", "reason")),
    Family("llm_model_selection_duration_seconds", "histogram", "Time of one choice.", ("method",), STAGE_SECONDS),
    Family("llm_model_selection_score", "histogram", "Score of the model that was chosen.", ("method",), SHARES),
    Family(
        "llm_model_selection_confidence", "histogram", "Probability of the model that was chosen, of algorithms that have one: decision, router_dc.",
        ("method",), SHARES,
    ),
    Family("llm_looper_attempts", "counter", "Models asked by cascades, by how it ended: accepted, unsure, failed.", ("model", "outcome")),
    Family("vsr_upstream_healthy", "gauge", "1 unless active health checks found the backend unwell.", ("model", "backend")),
    Family(
        "headway_prefix_placements", "counter",
        "Requests of models with prefix_routing, by what came of it: held (went to the backend that holds most of the prompt), busy (that one has too many), "
        "not_held, empty (no backend is known to hold anything), no_tokens (the tokens were not known in time), special (a salt or an adapter).",
        ("model", "outcome"),
    ),
    Family("headway_prefix_lookup_seconds", "histogram", "Time of learning the tokens of a prompt and who holds them.", ("model",), STAGE_SECONDS),
    Family("headway_prefix_index_blocks", "gauge", "Beginnings of prompts that the backend is known to hold, in blocks.", ("model", "backend")),
    Family(
        "headway_prefix_event_batches", "counter",
        "Batches of KV events that were applied, and what else happened: replayed, gap (some were missed), no_replay, lost (missed for good), restarted, stale, malformed.",
        ("model", "backend", "outcome"),
    ),
    # configuration
    Family("vsr_config_reloads", "counter", "Configurations offered, by what became of them.", ("outcome",)),
    Family("vsr_config_last_reload_successful", "gauge", "1 unless the configuration offered last was rejected."),
    Family("vsr_config_generation", "gauge", "Number of the configuration that serves, counted from the start of the process."),
    Family("vsr_config_retired_generations", "gauge", "Replaced configurations that requests still use."),
    # plugins
    Family("llm_plugin_execution", "counter", "Hooks of plugins that ran, by what came of them: success, refused, error.", ("plugin_type", "status")),
    Family("llm_plugin_execution_errors", "counter", "Hooks of plugins that broke down.", ("plugin_type",)),
    Family("llm_cache_plugin_hits", "counter", "Answers that the response cache gave.", ("decision",)),
    Family("llm_cache_plugin_misses", "counter", "Lookups in the response cache that found nothing.", ("decision",)),
    Family("llm_cache_entries", "counter", "Answers that the response cache kept.", ("backend",)),
    Family(
        "llm_cache_operations", "counter", "Steps of the response cache: lookup_exact and lookup_semantic (hit, miss), store (success), any of them error.",
        ("backend", "operation", "status"),
    ),
    Family("llm_response_cache_operation_duration_seconds", "histogram", "Time of one such step.", ("backend", "operation", "status"), STAGE_SECONDS),
    Family("headway_cache_held_entries", "gauge", "Entries of the response cache: with vectors of the model that answers now, of another one, or none.", ("vectors",)),
    Family("headway_cache_guard_rejections", "counter", "Similar entries that the guard did not let pass, by the difference it found.", ("difference",)),
    Family("sr_request_params_blocked", "counter", "Fields of requests that request_params took out because they are blocked.", ("decision", "param")),
    Family("sr_request_params_max_tokens_capped", "counter", "Requests whose own limit of tokens request_params brought down.", ("decision",)),
    Family("sr_request_params_max_n_capped", "counter", "Requests whose n request_params brought down.", ("decision",)),
    Family("sr_request_params_unknown_field_stripped", "counter", "Fields that are not OpenAI's and that request_params took out.", ("decision",)),
    Family("vsr_tools_retrieval_duration_seconds", "histogram", "Time of finding the tools that fit one request.", ("strategy",), STAGE_SECONDS),
    Family("headway_pii_masked", "counter", "Values that masking replaced, by type.", ("decision", "entity")),
    Family("headway_response_guard", "counter", "Answers that a plugin judged: passed, flagged, unverified, unjudged.", ("plugin_type", "result")),
    Family("rag_retrieval_attempts", "counter", "Look-ups of documents: found, empty, failed.", ("decision", "result")),
    Family("rag_retrieval_latency_seconds", "histogram", "Time of one look-up of documents.", ("decision",), STAGE_SECONDS),
    Family("rag_cache_hits", "counter", "Look-ups of documents that were answered from those of before (`cache_results`).", ("decision",)),
    Family("rag_cache_misses", "counter", "Look-ups of documents that were not.", ("decision",)),
    Family("llm_context_compression_requests", "counter", "Requests that compression looked at, by what it did.", ("decision", "result")),
    Family("llm_context_compression_saved_tokens", "counter", "Estimated tokens that compression left out.", ("decision",)),
    Family("sr_shadow_dispatch", "counter", "Copies of requests to a second model, by how they ended.", ("decision", "result", "reason")),
    Family("sr_shadow_dispatch_latency_seconds", "histogram", "Time of one copy, waiting included.", ("decision",), ANSWER_SECONDS),
    Family("headway_replays_dropped", "gauge", "Records that could not be written since the start."),
    Family(
        "headway_session_protection", "counter", "Turns of protected sessions, by whose choice the model was: proposed for the request, kept by the session.",
        ("choice",),
    ),
    Family("headway_shared_store_up", "gauge", "1 while Redis answers for this store; there once it has been asked.", ("store",)),
    Family("headway_shared_store_failures", "counter", "Questions to Redis that were answered without it, by store, because it did not answer.", ("store",)),
    Family("llm_plugin_execution_latency_seconds", "histogram", "Time of one hook of a plugin.", ("plugin_type",), STAGE_SECONDS),
    # model runtimes
    Family("vsr_model_runtime_ready", "gauge", "1 while the deployment can answer.", ("deployment",)),
    Family("vsr_model_runtime_requests", "counter", "Calls to model runtimes.", ("deployment", "outcome")),
    Family("vsr_model_runtime_request_duration_seconds", "histogram", "Time of one call.", ("deployment", "surface"), REQUEST_SECONDS),
    Family("vsr_model_runtime_transport_seconds", "histogram", "What of a call the runtime did not spend itself.", ("deployment", "surface"), REQUEST_SECONDS),
    Family(
        "vsr_model_runtime_server_seconds", "histogram", "What the runtime says of its time, by phase.",
        ("deployment", "surface", "phase"), REQUEST_SECONDS,
    ),
    Family("vsr_model_runtime_unknown_answers", "counter", "Questions and inputs without an answer.", ("deployment", "reason")),
    Family("vsr_model_runtime_restarts", "counter", "Starts of managed workers after the first.", ("deployment",)),
    Family("vsr_model_runtime_result_cache", "counter", "Look-ups in the router's cache of answers: hit, miss.", ("deployment", "result")),
    Family("vsr_model_runtime_replica_ready", "gauge", "1 while the replica can answer.", ("deployment", "replica")),
    Family("vsr_model_runtime_replica_inflight", "gauge", "Exchanges with the replica now.", ("deployment", "replica")),
    Family("vsr_model_runtime_replica_admitted_bytes", "gauge", "Bytes of requests that the replica has not answered.", ("deployment", "replica")),
    Family("vsr_model_runtime_replica_requests", "counter", "Exchanges with the replica.", ("deployment", "replica", "outcome")),
    Family("vsr_model_runtime_stage_decision_calls", "counter", "Calls with the questions of one stage: first, later.", ("deployment", "round")),
    Family("vsr_model_runtime_bundle_question_wait_seconds", "histogram", "Time a question waited for those that left with it.", (), REQUEST_SECONDS),
    Family("vsr_model_runtime_bundle_wait_seconds", "histogram", "Time from the first waiting call to its departure.", (), REQUEST_SECONDS),
    Family("vsr_model_runtime_bundle_tasks", "histogram", "Calls to runtimes that left together.", (), (1, 2, 4, 8, 16, 32)),
)
