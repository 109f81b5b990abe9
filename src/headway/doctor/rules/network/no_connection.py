"""What callers print when they get no connection: refused, reset, no name, no answer to the first packet."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import Sight, sight

REFUSED: Final = sight(
    "onnection refused",
    "ECONNREFUSED",
    "All connection attempts failed",
    "Couldn't connect to server",
    "actively refused it",
    "Cannot connect to host",
    "Failed to connect to",
    "connection is refused",
)
RESET: Final = sight(
    "onnection reset by peer",
    "ECONNRESET",
    "Empty reply from server",
    "RemoteDisconnected",
    "Server disconnected without sending a response",
    "prematurely closed connection",
)
NO_NAME: Final = sight(
    "Name or service not known",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "Couldn't resolve host",
    "Failed to resolve '",
    "nodename nor servname provided",
    "No address associated with hostname",
    "no such host",
    "ENOTFOUND",
    "EAI_AGAIN",
    "host not found in upstream",
    "getaddrinfo failed",
    "NXDOMAIN",
    pattern=r"[Cc]ould(?: not|n't) resolve host:? '?(?P<curl>[\w.\-]+)|Failed to resolve '(?P<urllib>[^']+)'|lookup (?P<go>[\w.\-]+).*no such host|(?:ENOTFOUND|EAI_AGAIN) (?P<node>[\w.\-]+)"
    r"|host not found in upstream \"(?P<nginx>[\w.\-]+)|Cannot connect to host (?P<aiohttp>[\w.\-]+):\d+.*(?:Name or service|name resolution|nodename|getaddrinfo)|host='(?P<requests>[\w.\-]+)'.*(?:Name or service|name resolution|nodename)"
    r"|Name or service not known|Temporary failure in name resolution|nodename nor servname|No address associated|no such host|getaddrinfo failed|NXDOMAIN",
)
NO_ANSWER: Final = sight(
    "ConnectTimeout",
    "onnection timed out",
    "No route to host",
    "EHOSTUNREACH",
    "ETIMEDOUT",
    "Network is unreachable",
    "i/o timeout",
    "Connection timeout to host",
    "timed out while connecting to upstream",
    "Operation now in progress",
    "Failed to connect to",
    pattern=r"ConnectTimeout|No route to host|EHOSTUNREACH|connect ETIMEDOUT|Network is unreachable|dial tcp\S* .*i/o timeout|Connection timeout to host|while connecting to upstream"
    r"|(?:connect|[Cc]onnection) to \S+ (?:port \d+ )?.*(?:timed out|Operation now in progress)|Connection timed out after \d+ milli|Failed to connect to .*(?:timed out|after (?:[3-9]\d{3}|\d{5,}) ms: Couldn't connect)"
    r"|\[Errno 110\] Connection timed out|connect\S* .*Connection timed out",
)
PUBLISHED: Final = sight(
    "/tcp", pattern=r"(?:(?P<address>[\d.]{7,15}|\[::\]|:::?):)?(?P<outside>\d{2,5})->(?P<inside>\d{2,5})/tcp"
)
INSIDE_OK: Final = sight(
    "docker exec",
    "kubectl exec",
    "docker compose exec",
    "podman exec",
    pattern=r"(?:docker|kubectl|podman)(?: compose)? exec .*curl",
)
EXITED: Final = sight(
    "exited with code",
    "Back-off restarting failed container",
    "CrashLoopBackOff",
    "OOMKilled",
    pattern=r"(?<![\w.\-])(?P<name>[\w.\-]{1,100}) exited with code (?P<code>\d+)|Back-off restarting|CrashLoopBackOff|OOMKilled",
)
PROBE_FAILED: Final = sight("probe failed", pattern=r"(?P<kind>Liveness|Readiness|Startup) probe failed")
PROBE_KILLS: Final = sight(
    "failed liveness probe, will be restarted", "failed startup probe, will be restarted", "will be restarted"
)

# other parties that dial: collectives, stores, Ray, the hub, a router that asks its own runtime
_NOT_A_CALLER: Final = re.compile(
    r"connectFullMesh|SO_ERROR|Gloo|gloo|NCCL|c10d|TCPStore|socket\.cpp|ProcessGroup|client socket has|raylet|gcs_|GCS|ray\.|rendezvous|master_addr|remote=\["
    r"|huggingface|/resolve/|/api/models|hf\.co|hub-mirror|pypi|ERR_CONNECT_FAIL|X-Squid|apt-get|archive\.ubuntu|bind on address|usage_stats|stats\.vllm|otlp|OTLP|opentelemetry|:431[78]|exporting|pushgateway|statsd|jaeger|redis|postgres|mysql|etcd|docker\.sock"
)


def of_callers(case: Case, *sights: Sight) -> list[Hit]:
    """Hits that are of a program which calls the server, not of the parts of the server among themselves."""
    return [
        hit
        for hit in case.log.hits(*sights)
        if not _NOT_A_CALLER.search(hit.line.text) and "ip=" not in hit.line.process
    ]


def target_of(text: str) -> tuple[str, int] | None:
    """Host and port that a message names: `10.0.0.5:8000`, `http://vllm:8000`, `port 8000`, `host='vllm', port=8000`."""
    for pattern in (
        r"host='(?P<host>[^']+)', port=(?P<port>\d+)",
        r"https?://(?P<host>\[[^\]]+\]|[\w.\-]+):(?P<port>\d+)",
        r"(?:connect to|to host|host) (?P<host>[\w.\-:\[\]]+?)(?: \([^)]*\))?(?: port |:)(?P<port>\d{1,5})\b",
        r"(?:tcp\d? |ECONNREFUSED |ETIMEDOUT |EHOSTUNREACH |ECONNRESET )(?P<host>[\w.\-]+|\[[^\]]+\]|::1):(?P<port>\d{2,5})\b",
        r"(?P<host>\d{1,3}(?:\.\d{1,3}){3}|localhost):(?P<port>\d{2,5})\b",
    ):
        if found := re.search(pattern, text):
            return found["host"].strip("[]"), int(found["port"])
    return None


def configured_target(case: Case) -> tuple[str, int] | None:
    """Host and port of the server's address in the caller's environment."""
    for variable, value in case.context.members("env").items():
        if variable.endswith(("BASE_URL", "API_BASE", "_ENDPOINT")) and (target := target_of(str(value))):
            return target
    return None
