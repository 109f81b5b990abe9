"""The engine's flags that have no feature behind them yet, that need none, or that are refused."""

from __future__ import annotations

from headway.flags.flag import Flag

M, C, S, P, LORA, OTHER = "Model", "Cache", "Scheduler", "Parallel", "LoRA", "Other"
BREADTH, CHECKPOINTS, KERNELS, DEPTH, DISTRIBUTED = (
    "Engine breadth",
    "Checkpoints",
    "Kernels",
    "Engine depth",
    "Distributed",
)
_EAGER = "Models run without graph compilation."

LATER_FLAGS: tuple[Flag, ...] = (
    # model
    Flag(
        "trust-remote-code", "bool", False, "Run code from the model's repository.", M,
        refused="code from model repositories is never run, since it would have all rights of this process. Use a model whose "
        "architecture Headway knows (headway inspect MODEL tells), or convert the checkpoint to one.",
    ),
    Flag(
        "hf-token", "text", None, "Token for the hub.", M,
        refused="every user of this machine can read a command line. Set the environment variable HF_TOKEN instead.",
    ),
    Flag("code-revision", "text", None, "Revision of code in the model's repository.", M, note="Code from model repositories is never run."),
    Flag("skip-tokenizer-init", "bool", False, "Serve token ids only.", M, feature="serving without a tokenizer", comes=DEPTH),
    Flag("config-format", "text", "auto", "Format of the model's config.", M, feature="config formats other than config.json", comes=CHECKPOINTS, harmless=("hf",)),
    Flag("safetensors-load-strategy", "text", "lazy", "How weight files are read.", M, note="Weight files are mapped into memory."),
    Flag("ignore-patterns", "words", (), "Files that are not downloaded.", M, note="Only files that are needed are downloaded."),
    Flag("enforce-eager", "bool", False, "No graph compilation.", M, note=_EAGER),
    Flag("disable-cascade-attn", "bool", True, "No cascade attention.", M, note="There is no cascade attention."),
    # cache
    Flag("prefix-caching-hash-algo", "text", "sha256", "Hash of cached prefixes.", C, feature="choice of hash", comes=DEPTH),
    Flag("cpu-offload-gb", "float", 0.0, "GiB of weights kept in main memory.", C, note="On a CPU all weights are in main memory."),
    Flag("swap-space", "float", 4.0, "GiB of swap for KV blocks.", C, note="vLLM dropped it; preempted requests are computed again."),
    # scheduler
    Flag("async-scheduling", "bool", None, "Schedule while the device computes.", S, note="On a CPU scheduling and computing share the cores."),
    Flag("scheduler-cls", "text", None, "Import path of a scheduler.", S, feature="scheduler plug-ins", comes=DEPTH),
    Flag("disable-hybrid-kv-cache-manager", "bool", False, "One KV layout for all layers.", S, note="All layers share one KV layout."),
    # several devices
    Flag("data-parallel-size", "int", 1, "Copies of the model.", P, aliases=("-dp",), feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-rank", "int", None, "Number of this copy.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-size-local", "int", None, "Copies on this host.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-address", "text", None, "Address of the first copy.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-rpc-port", "int", 29550, "Port of the first copy.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-backend", "text", "mp", "How copies are started.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-hybrid-lb", "bool", False, "Balance inside and outside.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("data-parallel-external-lb", "bool", False, "Balance outside.", P, feature="data parallelism", comes=DISTRIBUTED),
    Flag("enable-expert-parallel", "bool", False, "Spread experts.", P, feature="expert parallelism", comes=DISTRIBUTED),
    Flag("disable-custom-all-reduce", "bool", False, "Use the library's all-reduce.", P, note="There is one device."),
    Flag("max-parallel-loading-workers", "int", None, "Workers that load at once.", P, note="One process loads the model."),
    Flag("numa-bind", "bool", False, "Bind workers to NUMA nodes.", P, feature="NUMA binding", comes=DISTRIBUTED),
    Flag("numa-bind-nodes", "words", (), "NUMA nodes of the workers.", P, feature="NUMA binding", comes=DISTRIBUTED),
    Flag("numa-bind-cpus", "words", (), "CPUs of the workers.", P, feature="NUMA binding", comes=DISTRIBUTED),
    Flag("device-ids", "words", (), "Devices to use.", P, feature="choice of devices", comes=DISTRIBUTED),
    Flag("device", "text", "auto", "Kind of device.", P, feature="other devices", comes=DISTRIBUTED, harmless=("cpu",)),
    # LoRA
    Flag("fully-sharded-loras", "bool", False, "Shard adapters fully.", LORA, refused="there is one device, and nothing is sharded. Leave it out"),
    Flag("default-mm-loras", "json", {}, "Adapters for requests with images or audio.", LORA, refused="adapters are chosen by the name of the model in a request, not by what is in it. Leave it out"),
    # other
    Flag(
        "attention-backend", "text", "auto", "Which attention kernels.", OTHER, aliases=("-ac",), feature="choice of attention kernels", comes=KERNELS,
        harmless=("native", "torch", "TORCH_SDPA", "CPU_ATTN"),
    ),
    Flag("compilation-config", "json", {}, "Graph compilation.", OTHER, aliases=("-cc",), note=_EAGER),
    Flag("optimization-level", "int", 2, "How much is compiled.", OTHER, aliases=("-O",), note=_EAGER),
    Flag("max-seq-len-to-capture", "size", None, "Longest captured graph.", OTHER, note=_EAGER),
    Flag("performance-mode", "text", "balanced", "Latency or throughput.", OTHER, feature="performance modes", comes=KERNELS),
    Flag("collect-detailed-traces", "csv", (), "Modules that trace in detail.", OTHER, note="The span of a request holds all there is."),
    Flag("show-hidden-metrics-for-version", "text", None, "Metrics that were removed.", OTHER, note="Old metric names are served anyway."),
)  # fmt: skip
