"""The server's flags. Defaults equal those of ServerSettings (a test compares)."""

from __future__ import annotations

from headway.flags.flag import Flag
from headway.flags.span import Span, whole

F, L = "Frontend", "Logs and metrics"
DEPTH, DISTRIBUTED = "Engine depth", "Distributed"

SECONDS = Span(0, 10**9)  # a year is 3 * 10**7; clocks take no much larger number

SERVER_FLAGS: tuple[Flag, ...] = (
    Flag("host", "text", "127.0.0.1", "Address to listen on; 0.0.0.0 or :: = all interfaces.", F),
    Flag("port", "int", 8000, "Port to listen on; 0 = any free one.", F, span=whole(0, 65535)),
    Flag("uds", "text", None, "Path of a Unix socket to listen on instead.", F),
    Flag("root-path", "text", "", "Path prefix that a proxy in front strips.", F),
    Flag("ssl-certfile", "text", None, "PEM file with the certificate chain: serve HTTPS.", F),
    Flag("ssl-keyfile", "text", None, "PEM file with its private key, not encrypted; absent = it is in the certificate's file.", F),
    Flag("ssl-ca-certs", "text", None, "PEM file with the authorities whose client certificates are taken.", F),
    Flag("ssl-cert-reqs", "int", 0, "Client certificates: 0 none, 1 optional, 2 required.", F, span=whole(0, 2)),
    Flag("ssl-ciphers", "text", None, "Ciphers for TLS 1.2, in OpenSSL's notation.", F),
    Flag("enable-ssl-refresh", "bool", False, "Use certificate and key files anew when they change.", F),
    Flag("api-key", "texts", (), "Key that clients must send; may be repeated. VLLM_API_KEY is read when absent.", F),
    Flag("allowed-origins", "texts", (), "Origins that browsers may call from (CORS); absent = none.", F),
    Flag("allowed-methods", "texts", ("*",), "Methods that browsers may use.", F),
    Flag("allowed-headers", "texts", ("*",), "Headers that browsers may send.", F),
    Flag("allow-credentials", "bool", False, "Browsers may send credentials.", F),
    Flag("max-request-bytes", "size", 32 * 1024 * 1024, "Largest request body.", F, span=whole(1)),
    Flag("max-json-depth", "int", 64, "Deepest nesting of a request body.", F, span=whole(1, 256)),
    Flag("h11-max-incomplete-event-size", "size", 4 * 1024 * 1024, "Most bytes of request line and headers.", F, span=whole(1)),
    Flag("h11-max-header-count", "int", 256, "Most headers of a request.", F, span=whole(1)),
    Flag("request-head-timeout", "float", 30.0, "Seconds that a client has to send request line and headers (408); 0 = for ever.", F, span=SECONDS),
    Flag("request-body-timeout", "float", 300.0, "Seconds that a client has to send the body (408); 0 = for ever.", F, span=SECONDS),
    Flag("request-timeout", "float", 0.0, "Seconds until a request is ended (504) unless its header x-request-timeout-ms says otherwise; 0 = never.", F, span=SECONDS),
    Flag("max-connections", "int", 0, "Connections at the same time (503); 0 = as many as files may be open (ulimit -n).", F, span=whole(0)),
    Flag("response-role", "text", "assistant", "Role of answers in chats.", F),
    Flag("chat-template", "text", None, "File with a chat template, or the template itself, instead of the model's.", F),
    Flag("default-chat-template-kwargs", "json", {}, "Variables for the chat template that requests may replace.", F),
    Flag("trust-request-chat-template", "bool", False, "Requests may bring their own chat_template, rendered in a process of its own within 30 s (VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT) and 1 GiB.", F),
    Flag("exclude-tools-when-tool-choice-none", "bool", False, "Do not show tools to the template when tool_choice is none.", F),
    Flag("enable-auto-tool-choice", "bool", False, "The model may call tools when tool_choice is auto or absent; needs --tool-call-parser.", F),
    Flag("tool-call-parser", "text", None, "How this model writes tool calls: hermes, llama3_json, mistral, qwen3_coder, pythonic, granite, phi4_mini_json, or one of a plug-in.", F),
    Flag("tool-parser-plugin", "text", None, "Python file or module that registers a tool call parser.", F),
    Flag("reasoning-parser", "text", None, "How this model marks its reasoning, which answers then carry apart from their content: think, qwen3, deepseek_r1, granite.", F),
    Flag("return-tokens-as-token-ids", "bool", False, "Log-probabilities name tokens as token_id:N.", F),
    Flag("enable-prompt-tokens-details", "bool", False, "usage tells how many prompt tokens came from the cache.", F),
    Flag("enable-force-include-usage", "bool", False, "Every chunk of every stream carries usage.", F),
    Flag("enable-request-id-headers", "bool", False, "Answers carry X-Request-Id.", F),
    Flag("sse-keep-alive-interval", "float", 0.0, "Seconds of silence in a stream before a comment is sent; 0 = never.", F, span=SECONDS),
    Flag("stream-interval", "int", 1, "Tokens in one chunk of a stream.", F, span=whole(1)),
    Flag("fingerprint-mode", "text", "full", "What system_fingerprint tells.", F, choices=("full", "hash", "none")),
    Flag("disable-fastapi-docs", "bool", False, "No /docs, /redoc and /openapi.json.", F),
    Flag("middleware", "texts", (), "Import path of ASGI middleware: a class, or an async function of request and call_next; may be repeated.", F),
    Flag("enable-per-request-metrics", "bool", False, "Answers to one prompt carry its timings in `metrics`.", F),
    Flag("enable-tokenizer-info-endpoint", "bool", False, "Route /tokenizer_info: special tokens and chat template.", F),
    Flag("shutdown-timeout", "float", 0.0, "Seconds that requests may go on after SIGTERM.", F, span=SECONDS),
    Flag("exit-on-engine-death", "bool", False, "End the process with code 1 when the engine dies; else /health tells.", F),
    Flag("health-stall-seconds", "float", 300.0, "Seconds without a step, while there is work, after which /health says 503; 0 = never (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS).", F, span=SECONDS),
    # logs
    Flag("enable-log-requests", "bool", False, "One line for each request: id, sizes, sampling; never its text.", L),
    Flag("enable-log-outputs", "bool", False, "One line for each answer with its text, which may be private.", L),
    Flag("max-log-len", "int", None, "Longest text in the log, in characters; prompts are never logged.", L, span=whole(0)),
    Flag("log-config-file", "text", None, "JSON file for logging.config.dictConfig (VLLM_LOGGING_CONFIG_PATH).", L),
    Flag("log-level", "text", None, "DEBUG, INFO, WARNING or ERROR (VLLM_LOGGING_LEVEL).", L),
    Flag("uvicorn-log-level", "text", "info", "Level of the HTTP server's own log.", L, choices=("critical", "error", "warning", "info", "debug", "trace")),
    Flag("disable-uvicorn-access-log", "bool", False, "No line for each HTTP request.", L),
    Flag("disable-access-log-for-endpoints", "csv", (), "Comma-separated paths without access log.", L),
    Flag("legacy-metric-names", "bool", True, "/metrics also has underscore and removed names.", L),
    Flag("custom-histogram-buckets", "json", {}, "Borders of histograms, by metric or group: {\"request_latency\": [0.1, 0.5, 1]}.", L),
    Flag("lora-modules", "words", (), "LoRA adapters to load at the start: name=path, or a JSON object with name, path and base_model_name.", F),
    # not there
    Flag("allowed-media-domains", "words", (), "Hosts that images are fetched from.", F, feature="fetching images", comes=DEPTH),
    Flag("allowed-local-media-path", "text", "", "Folder that images are read from.", F, feature="reading images from files of the server", comes=DEPTH),
    Flag("chat-template-content-format", "text", "auto", "How templates see message parts.", F, feature="templates that read parts", comes=DEPTH, harmless=("string",)),
    Flag("disable-log-requests", "bool", False, "Do not log requests.", L, note="Requests are logged only with --enable-log-requests."),
    Flag("log-error-stack", "bool", False, "Log tracebacks.", L, note="Tracebacks of defects are always logged."),
    Flag("enable-server-load-tracking", "bool", False, "/load counts.", F, note="/load always counts."),
    Flag("tool-server", "text", None, "Servers of tools.", F, feature="tool calling", comes=DEPTH),
    Flag("api-server-count", "int", 1, "HTTP processes.", F, aliases=("-asc",), feature="several HTTP processes", comes=DISTRIBUTED),
)  # fmt: skip
