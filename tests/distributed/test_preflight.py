"""The comparison alone, on facts that were made up."""

from __future__ import annotations

import dataclasses
from string import Formatter
from typing import Any

import pytest

from headway.distributed.disagreement import KINDS
from headway.distributed.node_facts import NodeFacts, read_facts, write_facts
from headway.distributed.preflight import Attempt, Seen, compare
from headway.errors import LaunchError


def node(number: int, **other: Any) -> NodeFacts:
    facts = NodeFacts(
        node=number, host=f"h{number}", boot=f"boot {number}", clock=0.0, master="10.0.0.1:29501", versions={"torch": "2.13.0", "headway": "0.1.0"},
        settings={"--nnodes": "2"}, model={"config.json": "2:aa"}, model_problem="", interface="eth0", address=f"10.0.0.{number + 1}", chosen_by="the route",
        address_problem="", interfaces={"eth0": [f"10.0.0.{number + 1}"], "lo": ["127.0.0.1"]}, cpus=8, memory_bytes=1 << 34, shm_bytes=1 << 30,
    )  # fmt: skip
    return dataclasses.replace(facts, **other)


def test_equal_nodes_agree() -> None:
    assert compare([node(0), node(1)]) == ()
    assert compare([node(0), node(1)], Seen()) == ()


@pytest.mark.parametrize(
    ("other", "reason", "refuses", "says"),
    [
        ({"versions": {"torch": "2.9.1", "headway": "0.1.0"}}, "version_differs", True, "torch differs: node 0 (h0): 2.13.0; node 1 (h1): 2.9.1"),
        ({"versions": {"torch": "2.13.1", "headway": "0.1.0"}}, "version_differs", False, "2.13.1"),
        ({"versions": {"torch": "2.13.0", "headway": "0.1.1"}}, "version_differs", True, "headway differs"),
        ({"versions": {"headway": "0.1.0"}}, "version_differs", True, "node 1 (h1): unknown"),
        ({"settings": {"--nnodes": "2", "--dtype": "half"}}, "setting_differs", True, "--dtype differs: node 0 (h0): not given; node 1 (h1): half"),
        ({"model": {"config.json": "2:bb"}}, "model_differs", True, "config.json 2:bb"),
        ({"model": {"config.json": "2:aa", "b.gguf": "9:cc"}}, "model_differs", True, "node 0 (h0): b.gguf missing"),
        ({"model": {}, "model_problem": "no such folder"}, "model_missing", True, "node 1 (h1): no such folder"),
        ({"address": "127.0.1.1"}, "loopback_between_hosts", True, "127.0.1.1, chosen by the route"),
        ({"address": "", "address_problem": "interface_missing", "chosen_by": "GLOO_SOCKET_IFNAME=ib0"}, "interface_missing", True, "it has eth0 10.0.0.2, lo"),
        ({"address_problem": "interface_down"}, "interface_down", True, "down"),
        ({"address_problem": "address_not_here", "chosen_by": "VLLM_HOST_IP=1.2.3.4"}, "address_not_here", True, "VLLM_HOST_IP=1.2.3.4 is no address"),
        ({"master": "10.0.0.7:29501"}, "master_differs", True, "10.0.0.7"),
        ({"node": 0}, "node_rank_twice", True, "node 0: h0: 10.0.0.1; h1: 10.0.0.2"),
        ({"shm_bytes": 64 << 20}, "shm_small", False, "node 1 (h1): 64 MiB"),
        ({"cpus": 4}, "cpus_differ", False, "node 1 (h1): 4"),
        ({"memory_bytes": 1 << 33}, "memory_differs", False, "8.0 GiB"),
    ],
)
def test_each_difference_is_named(other: dict[str, Any], reason: str, refuses: bool, says: str) -> None:
    found = [one for one in compare([node(0), node(1, **({"host": "h1"} | other))]) if one.reason != "node_not_given"]
    assert [(one.reason, one.refuses) for one in found] == [(reason, refuses)]
    assert says in found[0].sentence, found[0].sentence
    assert found[0].fix


def test_what_refuses_comes_first() -> None:
    found = compare([node(0), node(1, cpus=4, settings={"--nnodes": "2", "--seed": "1"}, shm_bytes=1)])
    assert [one.refuses for one in found] == sorted((one.refuses for one in found), reverse=True)
    assert found[0].reason == "setting_differs"


def test_files_that_were_not_given() -> None:
    (found,) = compare([node(0, settings={"--nnodes": "3"}), node(2, settings={"--nnodes": "3"})])
    assert (found.reason, found.refuses) == ("node_not_given", False)
    assert "node 1" in found.sentence


def test_what_an_exchange_sees() -> None:
    attempts = [Attempt(0, 1, "10.0.0.2:40001", ""), Attempt(1, 0, "10.0.0.1:40000", "refused")]
    seen = Seen(attempts, {1: -3.25}, strangers=["10.0.0.9"], open_port="10.0.0.1:29501", port=29501)
    found = {one.reason: one for one in compare([node(0), node(1)], seen)}
    assert {reason: one.refuses for reason, one in found.items()} == {
        "unreachable": True, "clock_differs": False, "key_differs": False, "key_not_secret": False,
    }  # fmt: skip
    assert "connections between nodes fail: node 1 (h1) -> node 0 (h0): 10.0.0.1:40000: refused" in found["unreachable"].sentence
    assert "node 1 (h1): -3.2 s" in found["clock_differs"].sentence


def test_every_kind_uses_fields_that_exist() -> None:
    for kind in KINDS.values():
        for text in kind:
            assert {name for _, name, _, _ in Formatter().parse(text) if name} <= {"subject", "shown", "wanted"}


def test_facts_survive_their_file() -> None:
    assert read_facts(write_facts(node(1)), "f") == node(1)


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[]", b"\xff", write_facts(node(1)).replace(b'"node":1', b'"node":-1'), write_facts(node(1)).replace(b'"cpus"', b'"cpvs"'), b" " * (1 << 19)],
)
def test_other_texts_are_refused(text: bytes) -> None:
    with pytest.raises(LaunchError) as caught:
        read_facts(text, "a.json")
    assert caught.value.reason == "facts_invalid"
    assert "a.json" in str(caught.value)
