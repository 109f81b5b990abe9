"""One node of a launch on each of two hosts, which compare themselves:

    unshare -rn python -m tests.distributed.two_hosts '{"nodes": [{"rank": 0}, {"rank": 1, "environment": {...}}], "before": [["b", "ip", ...]]}'

Prints one JSON object for each node, in their order.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.distributed.cabled_hosts import Prefix, cabled_hosts, run

_NODE = """
import json, os, sys, time
from headway.distributed.cluster_key import cluster_key
from headway.distributed.node_facts import gather_facts
from headway.distributed.preflight_exchange import check_nodes
from headway.distributed.topology import Topology
from headway.errors import LaunchError
rank, timeout = int(sys.argv[1]), float(sys.argv[2])
topology = Topology(2, 1, 1, 2, rank, "10.77.0.1", 29501, timeout, "flags")
facts = gather_facts(topology, None, {})
start = time.monotonic()
try:
    found, reason, text = check_nodes(topology, facts, cluster_key(29501)).warnings, "", ""
except LaunchError as error:
    found, reason, text = (), error.reason, str(error)
print(json.dumps({"reason": reason, "text": text, "address": facts.address, "warnings": [one.reason for one in found], "seconds": time.monotonic() - start}))
"""


def main(scenario: dict[str, Any]) -> None:
    with cabled_hosts() as hosts:
        for host, *words in scenario.get("before", ()):
            run(*hosts[host], *words)
        print(*_run_nodes(scenario["nodes"], hosts), sep="\n", flush=True)


def _run_nodes(nodes: list[dict[str, Any]], hosts: Mapping[str, Prefix]) -> list[str]:
    started = []
    for node in nodes:
        variables = [f"{name}={value}" for name, value in node.get("environment", {}).items()]
        words = [*hosts["ab"[node["rank"]]], "env", *variables, sys.executable, "-c", _NODE, str(node["rank"]), str(node.get("timeout", 60))]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
    return [process.communicate(timeout=100)[0].strip() for process in started]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
