"""The engine's flags that work, and the complete engine table. Defaults equal those of EngineConfig (a test compares)."""

from __future__ import annotations

from headway.engine.config import CHOICES, SPANS
from headway.engine.flags_later import LATER_FLAGS
from headway.flags.flag import Flag

M, C, S, A, D, L, P = "Model", "Cache", "Scheduler", "LoRA", "Speculation", "Logs and metrics", "Parallel"

BUILT_FLAGS: tuple[Flag, ...] = (
    # model
    Flag("tokenizer", "text", None, "Folder, tokenizer.json, GGUF file, hub id or short name of the tokenizer, if not the model's own.", M),
    Flag("tokenizer-mode", "text", "auto", "Kind of tokenizer; there is one of each, so slow means the same.", M, choices=CHOICES["tokenizer_mode"]),
    Flag("tokenizer-revision", "text", None, "Branch, tag or commit of a tokenizer from the hub.", M),
    Flag("revision", "text", None, "Branch, tag or commit of a model from the hub.", M),
    Flag("download-dir", "text", None, "Folder for downloads instead of the usual caches.", M),
    Flag("load-format", "text", "auto", "Kind of weight files: auto, safetensors, gguf, or dummy = random weights of that shape, for measuring.", M),
    Flag("model-impl", "text", "auto", "Who runs the model: auto = Headway where it knows the architecture, else transformers; vllm = Headway only.", M, choices=CHOICES["model_impl"]),
    Flag("hf-config-path", "text", None, "Folder, file, hub id or short name of the config.json to use instead of the model's.", M),
    Flag("hf-overrides", "json", {}, "Values that replace those of config.json, object merged into object.", M),
    Flag("disable-sliding-window", "bool", False, "Cut the context to the sliding window, so that no window is needed.", M),
    Flag("dtype", "text", "auto", "Data type of weights and computation; auto = bfloat16 for half and quantized weights.", M, choices=CHOICES["dtype"]),
    Flag("quantization", "text", None, "Weight format; a quantized checkpoint has its own, fp8, int8 and int4 quantize another one while it is loaded.", M, aliases=("-q",)),
    Flag(
        "max-model-len", "size", None, "Longest prompt plus answer in tokens; absent = the model's own, auto or -1 = what fits the KV cache.", M,
        words={"auto": -1}, span=SPANS["max_model_len"],
    ),
    Flag("seed", "int", 0, "Seed of everything random that has no seed of its own.", M, span=SPANS["seed"]),
    Flag("served-model-name", "words", (), "Name or names under which the API knows the model; answers carry the first.", M),
    Flag("generation-config", "text", "auto", "Where sampling defaults come from: auto = the model, vllm = neutral values, or a folder or file.", M),
    Flag("override-generation-config", "json", {}, "Sampling defaults that replace those of the model.", M),
    Flag("max-logprobs", "int", 20, "Most alternatives a request may ask for; -1 = the whole vocabulary.", M, span=SPANS["max_logprobs"]),
    Flag("logprobs-mode", "text", "raw_logprobs", "Which numbers log-probabilities are.", M, choices=CHOICES["logprobs_mode"]),
    Flag("batch-invariant", "bool", False, "The same request gets the same bits whatever runs beside it; slower.", M),
    Flag("logits-processors", "texts", (), "Logits processors to load, as package.module:Class; their code runs with all rights.", M),
    Flag("accept-licence", "texts", (), "Word of a licence that has to be accepted before a download, such as gemma.", M),
    Flag("runner", "text", "auto", "What the model is used for: generate, or pooling = it is read and never generates; auto = what the checkpoint is made for.", M, choices=CHOICES["runner"]),
    Flag("convert", "text", "auto", "How a pooling model is read: embed = vectors, classify = its classification head; auto and none = what the checkpoint has.", M, choices=CHOICES["convert"]),
    Flag("pooler-config", "json", {}, "How prompts are read: pooling_type LAST or MEAN, use_activation, dimensions.", M),
    # cache
    Flag("block-size", "int", 16, "Tokens in one block of the KV cache.", C, span=SPANS["block_size"]),
    Flag(
        "gpu-memory-utilization", "float", None, "Fraction of memory for weights and KV cache; on a CPU: of the memory limit.", C,
        aliases=("device-memory-utilization",), span=SPANS["gpu_memory_utilization"],
    ),
    Flag("kv-cache-memory-bytes", "size", None, "Size of the KV cache; absent = the smaller of 2 GiB and 25 % of the available memory.", C, span=SPANS["kv_cache_memory_bytes"]),
    Flag("kv-cache-dtype", "text", "auto", "Data type of the KV cache: auto = that of the model; int8 = half of bfloat16's memory, with a scale for each token and head.", C, choices=CHOICES["kv_cache_dtype"]),
    Flag("num-gpu-blocks-override", "int", None, "Number of KV blocks, instead of a size.", C, span=SPANS["num_gpu_blocks_override"]),
    Flag("enable-prefix-caching", "bool", True, "Keep computed prompts for requests that begin alike.", C),
    Flag("kv-offloading-size", "float", None, "GiB of copies of KV blocks that the cache gave up, from which they come back without being computed.", C, span=SPANS["kv_offloading_size"]),
    Flag("kv-offloading-backend", "text", "native", "Who keeps those copies.", C, choices=CHOICES["kv_offloading_backend"]),
    Flag("kv-offloading-path", "text", None, "Folder for those copies, in a file that is gone with the process; absent = memory.", C),
    Flag("kv-events-config", "json", {}, "Tell over ZeroMQ which prefixes are cached: enable_kv_cache_events, publisher, endpoint, replay_endpoint, ... (docs/kv-events.md).", C),
    Flag("kv-transfer-config", "json", {}, "Give KV blocks of prompts to other engines, or take them, over TCP: kv_connector, kv_role, kv_ip, kv_port, ... (docs/disaggregation.md).", C),
    # scheduler
    Flag("max-num-seqs", "size", 256, "Most sequences in one step.", S, span=SPANS["max_num_seqs"]),
    Flag("max-num-batched-tokens", "size", 2048, "Token budget of one step.", S, span=SPANS["max_num_batched_tokens"]),
    Flag("enable-chunked-prefill", "bool", True, "Compute long prompts in parts, together with answers that run.", S),
    Flag("long-prefill-token-threshold", "size", 0, "Most prompt tokens of one request in a step while others wait; 0 = no cap.", S, span=SPANS["long_prefill_token_threshold"]),
    Flag("scheduling-policy", "text", "fcfs", "Order of the queue: arrival, or priority (lower first).", S, choices=CHOICES["scheduling_policy"]),
    Flag("scheduler-reserve-full-isl", "bool", True, "Begin a prompt when all of it has room in the KV cache; else when its first chunk has.", S),
    Flag("watermark", "float", 0.0, "Fraction of the KV blocks that a prompt leaves free when it begins beside others.", S, span=SPANS["watermark"]),
    Flag("prefill-schedule-interval", "int", 1, "While answers are written, prompts are computed in every so many steps only.", S, span=SPANS["prefill_schedule_interval"]),
    Flag("max-num-queued-reqs", "size", None, "Requests that may wait before new ones are answered with 503.", S, span=SPANS["max_num_queued_reqs"]),
    Flag("max-num-queued-tokens", "size", None, "Prompt tokens that may wait before new requests are answered with 503.", S, span=SPANS["max_num_queued_tokens"]),
    # several processes
    Flag("tensor-parallel-size", "int", 1, "Parts of each layer, in one process each; attention heads must divide by it.", P, aliases=("-tp",), span=SPANS["tensor_parallel_size"]),
    Flag("pipeline-parallel-size", "int", 1, "Groups of layers, in one process each.", P, aliases=("-pp",), span=SPANS["pipeline_parallel_size"]),
    Flag("distributed-executor-backend", "text", None, "How ranks are started: mp = processes, uni = there is one rank; absent = as the sizes ask.", P, choices=CHOICES["distributed_executor_backend"]),
    Flag("nnodes", "int", 1, "Number of hosts.", P, aliases=("-n",), span=SPANS["nnodes"]),
    Flag("node-rank", "int", 0, "Number of this host.", P, aliases=("-r",), span=SPANS["node_rank"]),
    Flag("master-addr", "text", "127.0.0.1", "Address of the first host.", P),
    Flag("master-port", "int", 29501, "Port of the first host, where the others report.", P, span=SPANS["master_port"]),
    Flag("distributed-timeout-seconds", "float", 60.0, "After so long a silence a rank has failed.", P, span=SPANS["distributed_timeout_seconds"]),
    # operations
    Flag("enable-sleep-mode", "bool", False, "Allow /sleep and /wake_up (VLLM_SERVER_DEV_MODE=1 has the routes): a server without work gives its memory back.", "Other"),
    Flag("profiler-config", "json", {}, "Torch profiler for /start_profile and /stop_profile: profiler, torch_profiler_dir, torch_profiler_with_stack, ...", L),
    # images
    Flag("limit-mm-per-prompt", "json", {}, 'Most images in one prompt: {"image": 4}; 16 when absent.', M),
    Flag("mm-processor-kwargs", "json", {}, 'Changes to the image processor: {"do_image_splitting": false, "size": {"longest_edge": 1024}}.', M),
    # speculation
    Flag("speculative-config", "json", {}, "Speculative decoding as a JSON object: method (ngram, suffix, draft_model), num_speculative_tokens, model, ... (docs/speculation.md).", D, aliases=("-sc",)),
    Flag("spec-method", "text", None, "Way of drafting: ngram, suffix or draft_model.", D),
    Flag("spec-model", "text", None, "Smaller model that drafts, with the same vocabulary.", D),
    Flag("spec-tokens", "int", None, "Most tokens drafted at once.", D, span=SPANS["spec_tokens"]),
    # logs
    Flag("disable-log-stats", "bool", False, "No statistics line every 10 seconds.", L),
    Flag("log-stats-interval", "float", 10.0, "Seconds between statistics lines (VLLM_LOG_STATS_INTERVAL).", L, span=SPANS["log_stats_interval"]),
    Flag("otlp-traces-endpoint", "text", None, "OTLP collector for a span of each request; needs pip install 'headway[otel]'.", L),
    # LoRA
    Flag("enable-lora", "bool", False, "Serve LoRA adapters beside the model (docs/lora.md).", A),
    Flag("max-loras", "int", 1, "Different adapters in one step.", A, span=SPANS["max_loras"]),
    Flag("max-lora-rank", "int", 16, "Largest rank of an adapter: 1, 8, 16, 32, 64, 128, 256, 320 or 512.", A, span=SPANS["max_lora_rank"]),
    Flag("max-cpu-loras", "int", None, "Adapters kept in memory, those used last; others are read again when they are asked for. As many as --max-loras when absent.", A, span=SPANS["max_cpu_loras"]),
    Flag("lora-dtype", "text", "auto", "Data type of adapters; auto = that of the model.", A, choices=CHOICES["lora_dtype"]),
    # the form of answers
    Flag("structured-outputs-config", "json", {}, "Grammars and schemas: backend auto or xgrammar, disable_any_whitespace, enable_in_reasoning.", "Other"),
)  # fmt: skip

ENGINE_FLAGS: tuple[Flag, ...] = (*BUILT_FLAGS, *LATER_FLAGS)
