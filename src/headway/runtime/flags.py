"""The flags of `vllm-srun serve`. Defaults equal those of WorkerSettings (a test compares)."""

from __future__ import annotations

from headway.flags.flag import Flag
from headway.flags.span import Span, whole

MODELS, FRONT, RUN, LOAD, LOGS = "Models", "Frontend", "Execution", "Loading", "Logs"

# These describe the one model that is given as a word; a models file has the same keys for each model.
MODEL_FLAGS: tuple[Flag, ...] = (
    Flag("models", "text", None, "YAML or JSON file with the list of models, instead of words.", MODELS),
    Flag("revision", "text", None, "Commit of the model on the hub, 40 hex digits; for one model only.", MODELS),
    Flag("served-model-name", "text", None, "Name of the model in requests and answers; for one model only.", MODELS),
    Flag("device", "text", "auto", "auto, or an accelerator with an optional number: cpu, cuda:1, ...", MODELS),
    Flag("engine", "text", "auto", "auto, or the name of an engine plug-in.", MODELS),
    Flag("family", "text", None, "Family plug-in to use, instead of the one that recognizes the package.", MODELS),
)

WORKER_FLAGS: tuple[Flag, ...] = (
    Flag("host", "text", "127.0.0.1", "Address to listen on; 0.0.0.0 or :: = all interfaces.", FRONT),
    Flag("port", "int", 8100, "Port to listen on; 0 = any free one.", FRONT, span=whole(0, 65535)),
    Flag("uds", "text", None, "Path of a Unix socket to listen on instead.", FRONT),
    Flag("api-key", "texts", (), "Key that clients must send; may be repeated. VLLM_SRUN_API_KEY is read when absent.", FRONT),
    Flag("decision-alias", "texts", ("jev-latest", "jev-preview"), "Name that means the first model that answers decisions; may be repeated.", FRONT),
    Flag("max-request-bytes", "size", 8_388_608, "Largest request body.", FRONT, span=whole(1)),
    Flag("max-bundle-tasks", "int", 64, "Most tasks of one bundle.", FRONT, span=whole(1)),
    Flag("shutdown-timeout", "float", 10.0, "Seconds that requests may go on after SIGTERM.", FRONT, span=Span(0, 10**9)),
    Flag("threads", "int", None, "CPU threads for all models together; absent = all cores that the process may use.", RUN, span=whole(1, 4096)),
    Flag("memory-budget", "float", None, "GiB that one model may need, estimated; a larger one is refused.", RUN, span=Span(0, 10**6, above=True)),
    Flag("max-queue", "int", 256, "Unanswered jobs of one model before requests get 429.", RUN, span=whole(1)),
    Flag("max-queued-tokens", "size", 4_194_304, "Tokens of unanswered jobs of one model before requests get 429.", RUN, span=whole(1)),
    Flag("batch-window-ms", "float", 2.0, "Longest wait for company before a forward pass, in milliseconds.", RUN, span=Span(0, 10_000)),
    Flag("max-batch-tokens", "size", 65_536, "Most tokens of one forward pass.", RUN, span=whole(1)),
    Flag("max-num-seqs", "int", None, "Most rows of one forward pass; absent = no bound but that on tokens.", RUN, span=whole(1)),
    Flag("enable-shared-context", "bool", None, "Compute what the questions of a request have in common once; absent = as the family prefers.", RUN),
    Flag("batch-invariant", "bool", False, "Share forward passes only where answers stay the same bit for bit.", RUN),
    Flag("result-cache-entries", "int", 16_384, "Results kept for each model; 0 = none.", RUN, span=whole(0)),
    Flag("load-attempts", "int", 5, "How often loading is tried when it may succeed later.", LOAD, span=whole(1, 1000)),
    Flag("load-retry-seconds", "float", 5.0, "Seconds before the second attempt; they double up to 300.", LOAD, span=Span(0, 300)),
    Flag("cache-dir", "text", None, "Folder for downloads, instead of the usual caches (HF_HUB_CACHE, HEADWAY_CACHE).", LOAD),
    Flag("offline", "bool", False, "Use only what is in the cache (HF_HUB_OFFLINE).", LOAD),
    Flag("base-path", "text", None, "Folder with the base model of adapter packages; its hashes are checked.", LOAD),
    Flag("accept-licence", "texts", (), "Identifier of a restricted licence that you accept; may be repeated.", LOAD),
    Flag("autotune-cache", "text", None, "Folder that keeps compiled kernels across starts (VLLM_SRUN_AUTOTUNE_CACHE).", LOAD),
    Flag("log-level", "text", "info", "How much is logged.", LOGS, choices=("debug", "info", "warning", "error")),
)  # fmt: skip

SRUN_FLAGS: tuple[Flag, ...] = (*MODEL_FLAGS, *WORKER_FLAGS)
