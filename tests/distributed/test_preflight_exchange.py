"""Nodes compare facts over real sockets; each node is a thread with an address of its own in 127.0.0.0/8."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headway.distributed.cluster_key import ClusterKey, cluster_key
from headway.distributed.disagreement import Disagreement
from headway.distributed.node_facts import NodeFacts, gather_facts
from headway.distributed.preflight_exchange import check_nodes
from headway.distributed.reach_probe import Door, knock, open_door
from headway.distributed.sealed_stream import introduce
from headway.distributed.topology import Topology
from headway.errors import ConfigError, LaunchError

KEY = ClusterKey(b"k" * 32, True)
Outcome = tuple[Disagreement, ...] | LaunchError
Change = Callable[[NodeFacts], NodeFacts]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(bytes(3 << 20))
    return tmp_path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def place(node: int, nodes: int, port: int, timeout: float) -> Topology:
    return Topology(nodes, 1, 1, nodes, node, "127.0.0.1", port, timeout, "flags")


def facts_of(topology: Topology, model: Path | None) -> NodeFacts:
    facts = gather_facts(topology, model, {"--dtype": "float32"}, {"VLLM_HOST_IP": f"127.0.0.{topology.node_rank + 1}"})
    return dataclasses.replace(facts, shm_bytes=1 << 30)


def meet(
    model: Path | None, nodes: int = 2, change: dict[int, Change] | None = None, keys: dict[int, ClusterKey] | None = None,
    absent: Sequence[int] = (), timeouts: dict[int, float] | None = None, port: int | None = None,
) -> dict[int, Outcome]:  # fmt: skip
    port = port or free_port()
    present = [node for node in range(nodes) if node not in absent]
    places = {node: place(node, nodes, port, (timeouts or {}).get(node, 60.0)) for node in present}
    facts = {node: (change or {}).get(node, lambda f: f)(facts_of(places[node], model)) for node in present}

    def one(node: int) -> Outcome:
        try:
            checked = check_nodes(places[node], facts[node], (keys or {}).get(node, KEY))
            assert checked.addresses == {each: facts[each].address for each in present}
            return checked.warnings
        except LaunchError as error:
            return error

    with ThreadPoolExecutor(nodes) as pool:
        return dict(zip(present, pool.map(one, present), strict=True))


def refused(outcome: Outcome) -> LaunchError:
    assert isinstance(outcome, LaunchError), outcome
    return outcome


def replaced(**fields: Any) -> Change:
    return lambda facts: dataclasses.replace(facts, **fields)


def test_nodes_that_agree(model: Path) -> None:
    assert meet(model, nodes=3) == {0: (), 1: (), 2: ()}


def test_version_skew_is_refused_on_every_node(model: Path) -> None:
    def older(facts: NodeFacts) -> NodeFacts:
        return dataclasses.replace(facts, versions={**facts.versions, "torch": "2.9.1"})

    for outcome in meet(model, change={1: older}).values():
        error = refused(outcome)
        assert error.reason == "version_differs"
        assert "the version of torch differs: node 0" in str(error)
        assert "): 2.9.1" in str(error)


def test_a_build_of_the_same_version_is_a_warning(model: Path) -> None:
    def other_build(facts: NodeFacts) -> NodeFacts:
        return dataclasses.replace(facts, versions={**facts.versions, "torch": facts.versions["torch"].split("+")[0] + "+other"}, cpus=facts.cpus + 3)

    for outcome in meet(model, change={1: other_build}).values():
        assert isinstance(outcome, tuple)
        assert {one.reason for one in outcome} == {"version_differs", "cpus_differ"}


def test_another_model_names_the_files(model: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "config.json").write_text("{}")
    (other / "model.safetensors").write_bytes(bytes((3 << 20) - 1) + b"x")  # the same size

    def with_other(facts: NodeFacts) -> NodeFacts:
        return dataclasses.replace(facts, model=gather_facts(place(1, 2, 1, 1.0), other, {}).model)

    error = refused(meet(model, change={1: with_other})[0])
    assert error.reason == "model_differs"
    assert "the files of the model differ in model.safetensors: " in str(error)


def test_a_model_that_one_node_lacks(model: Path) -> None:
    error = refused(meet(model, change={1: replaced(model={}, model_problem="/m holds no model files")})[1])
    assert error.reason == "model_missing"
    assert "node 1" in str(error)
    assert "/m holds no model files" in str(error)


def test_other_flags(model: Path) -> None:
    def other_dtype(facts: NodeFacts) -> NodeFacts:
        return dataclasses.replace(facts, settings={**facts.settings, "--dtype": "bfloat16"})

    error = refused(meet(model, change={1: other_dtype})[0])
    assert error.reason == "setting_differs"
    assert "--dtype differs" in str(error)


def test_an_address_at_which_a_node_cannot_listen(model: Path) -> None:
    error = refused(meet(model, change={1: replaced(address="203.0.113.1")})[1])  # of a range for documents
    assert error.reason == "unreachable"
    assert "203.0.113.1: that node cannot listen there" in str(error)


def test_doors_that_are_closed_or_somebody_else_s() -> None:
    async def try_doors() -> list[str]:
        async with open_door(1, "127.0.0.2") as right, open_door(2, "127.0.0.1") as other:
            stolen = dataclasses.replace(right, node=3, address=other.address, port=other.port)
            closed = Door(4, "127.0.0.1", free_port(), right.token)
            return [attempt.problem for attempt in await knock(0, [right, stolen, closed])]

    right, stolen, closed = asyncio.run(try_doors())
    assert right == ""
    assert stolen == "somebody else answers there"
    assert closed.startswith("refused")


def test_a_missing_node_is_named_on_all_that_came(model: Path) -> None:
    outcomes = meet(model, nodes=3, absent=[1], timeouts={0: 4.0})
    assert sorted(outcomes) == [0, 2]
    for outcome in outcomes.values():
        error = refused(outcome)
        assert error.reason == "node_missing"
        assert "node 1 did not come to node 0 within 4 s" in str(error)


def test_node_zero_missing_names_the_address(model: Path) -> None:
    port = free_port()
    error = refused(meet(model, absent=[0], timeouts={1: 0.5}, port=port)[1])
    assert error.reason == "master_unreachable"
    assert f"node 1 cannot reach node 0 at 127.0.0.1:{port} within 0.5 s: refused" in str(error)


def test_two_nodes_with_one_number(model: Path) -> None:
    error = refused(meet(model, nodes=3, change={2: replaced(node=1)})[0])
    assert error.reason in ("node_rank_twice", "node_missing")
    assert "two launches say that they are node 1" in str(error)
    assert "node 2 did not come" in str(error)


def test_another_key(model: Path) -> None:
    outcomes = meet(model, keys={1: ClusterKey(b"x" * 32, True)}, timeouts={0: 3.0})
    assert refused(outcomes[1]).reason == "key_differs"
    assert "127.0.0.1 brought another HEADWAY_CLUSTER_KEY" in str(refused(outcomes[0]))


def test_something_else_listens_there(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        port = server.getsockname()[1]
        server.settimeout(30)

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n" + b"x" * 64)
                connection.recv(100)
            server.close()

        greeted = pool.submit(greet)
        error = refused(meet(model, absent=[0], timeouts={1: 0.5}, port=port)[1])
        greeted.result()
    assert error.reason == "master_unreachable"


def test_a_taken_port_is_said_by_node_zero(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        error = refused(meet(model, absent=[1], port=server.getsockname()[1])[0])
    assert error.reason == "port_taken"


@pytest.mark.parametrize(
    "noise",
    [b"GET / HTTP/1.1\r\n\r\n", b"x" * 64, b"\x00" * 1000, b""],
)
def test_strangers_on_the_port_hurt_nobody(model: Path, noise: bytes) -> None:
    """One says something else; one says nothing and goes."""
    port = free_port()

    def stranger() -> None:
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                    client.sendall(noise)
                    client.recv(8)
                    return
            except OSError:
                continue

    with ThreadPoolExecutor(1) as pool:
        pool.submit(stranger)
        for outcome in meet(model, port=port).values():
            assert isinstance(outcome, tuple), outcome
            assert {one.reason for one in outcome} <= {"key_differs"}  # a warning: somebody came who does not belong here


def test_a_message_that_is_too_long_is_not_read(model: Path) -> None:
    """After a right greeting, too: node 1 is only missing."""
    port = free_port()

    async def boast() -> bytes:
        for _ in range(300):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.05)
        await introduce(reader, writer, KEY.secret)
        writer.write(struct.pack(">I", 1 << 30))
        return await reader.read(1)

    with ThreadPoolExecutor(1) as pool:
        boasting = pool.submit(lambda: asyncio.run(boast()))
        error = refused(meet(model, absent=[1], timeouts={0: 3.0}, port=port)[0])
        assert boasting.result() == b""  # the connection was closed
    assert error.reason == "node_missing"


def test_keys_come_from_the_variable_or_the_port() -> None:
    assert cluster_key(1, {}) == cluster_key(1, {})
    assert not cluster_key(1, {}).is_secret
    long = {"HEADWAY_CLUSTER_KEY": "a" * 32}
    assert cluster_key(1, long) == cluster_key(2, long)
    assert cluster_key(1, long).is_secret
    assert "aaaa" not in repr(cluster_key(1, long))
    with pytest.raises(ConfigError, match="at least 16"):
        cluster_key(1, {"HEADWAY_CLUSTER_KEY": "short"})
