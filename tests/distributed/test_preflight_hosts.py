"""The comparison between hosts: namespaces with a cable between them, each node a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.docs.pages import ROOT

_KEY: Final = {"HEADWAY_CLUSTER_KEY": "0123456789abcdef0123456789abcdef"}

# Drops what opens a connection (TCP, SYN without ACK) and lets everything else pass: a firewall, as classic BPF.
_NO_SYN: Final = "9,40 0 0 12,21 0 6 2048,48 0 0 23,21 0 4 6,48 0 0 47,84 0 0 18,21 0 1 2,6 0 0 2,6 0 0 4294967295"


def _has_namespaces() -> bool:
    if not all(shutil.which(program) for program in ("unshare", "nsenter", "ip", "tc")):
        return False
    return subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0


NEEDS_NAMESPACES = pytest.mark.skipif(not _has_namespaces(), reason="network namespaces need Linux with unshare, ip and tc, and the right to use them")
pytestmark = [pytest.mark.long, NEEDS_NAMESPACES]


def on_two_hosts(*nodes: dict[str, Any], before: tuple[list[str], ...] = ()) -> list[dict[str, Any]]:
    scenario = {"nodes": [{"environment": _KEY, **node} for node in nodes], "before": before}
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_SOCKET_IFNAME")}
    done = subprocess.run(["unshare", "-rn", sys.executable, "-m", "tests.distributed.two_hosts", json.dumps(scenario)], capture_output=True, text=True, timeout=110, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_hosts_that_agree_find_their_addresses_by_themselves() -> None:
    first, second = on_two_hosts({"rank": 0}, {"rank": 1})
    assert (first["reason"], second["reason"]) == ("", ""), (first, second)
    assert (first["address"], second["address"]) == ("10.77.0.1", "10.77.0.2")


def test_a_launch_without_a_key_is_warned_of() -> None:
    first, second = on_two_hosts({"rank": 0, "environment": {}}, {"rank": 1, "environment": {}})
    assert first["warnings"] == second["warnings"] == ["key_not_secret"], (first, second)


def test_a_firewall_that_lets_only_one_direction_through() -> None:
    """Node 1 reaches node 0, so everything looks fine until node 0 has to connect: both name the way that is closed."""
    closed = (["b", "tc", "qdisc", "add", "dev", "cable_b", "ingress"], ["b", "tc", "filter", "add", "dev", "cable_b", "ingress", "bpf", "bytecode", _NO_SYN, "da"])
    for outcome in on_two_hosts({"rank": 0}, {"rank": 1}, before=closed):
        assert outcome["reason"] == "unreachable", outcome
        assert "10.77.0.2:" in outcome["text"]
        assert "no answer in 5 s" in outcome["text"]
        assert "10.77.0.1:" not in outcome["text"]


def test_gloo_on_the_wrong_interface() -> None:
    for outcome in on_two_hosts({"rank": 0}, {"rank": 1, "environment": {**_KEY, "GLOO_SOCKET_IFNAME": "lo"}}):
        assert outcome["reason"] == "unreachable", outcome
        assert "127.0.0.1:" in outcome["text"]
    for outcome in on_two_hosts({"rank": 0}, {"rank": 1, "environment": {**_KEY, "GLOO_SOCKET_IFNAME": "ib0"}}):
        assert outcome["reason"] == "interface_missing", outcome
        assert "GLOO_SOCKET_IFNAME=ib0 names an interface that is not there" in outcome["text"]
        assert "cable_b 10.77.0.2" in outcome["text"]


def test_a_cable_that_is_cut_is_named_on_both_sides_in_time() -> None:
    cut = (["b", "ip", "link", "set", "cable_b", "down"],)
    first, second = on_two_hosts({"rank": 0, "timeout": 3}, {"rank": 1, "timeout": 3}, before=cut)
    assert first["reason"] == "node_missing"
    assert "node 1 did not come to node 0 within 3 s" in first["text"]
    assert second["reason"] == "master_unreachable"
    assert "node 1 cannot reach node 0 at 10.77.0.1:29501 within 3 s" in second["text"]
    assert first["seconds"] >= 3
