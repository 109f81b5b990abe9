"""From flags and variables to a Topology: what each custom means, and which contradictions are refused how."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.distributed.launch_environment import FOUR, PER_PROCESS, Launch, LaunchFlags, read_launch
from headway.errors import ConfigError

GUIDE = {"MASTER_ADDR": "192.168.1.10", "MASTER_PORT": "29500", "RANK": "1", "WORLD_SIZE": "2"}
TORCHRUN = {
    **GUIDE, "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "TORCHELASTIC_RUN_ID": "x",
}  # fmt: skip


def launch(flags: LaunchFlags | None = None, environment: dict[str, str] | None = None, tensor: int = 4, pipeline: int = 2) -> Launch:
    return read_launch(flags or LaunchFlags(), environment or {}, tensor=tensor, pipeline=pipeline)


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        pytest.param(LaunchFlags(), {}, ("single", 1, 0, "127.0.0.1", 29501), id="nothing"),
        pytest.param(LaunchFlags(), {"RANK": "0", "WORLD_SIZE": "1"}, ("single", 1, 0, "127.0.0.1", 29501), id="a world of one"),
        pytest.param(LaunchFlags(), {"MASTER_ADDR": "10.0.0.1"}, ("single", 1, 0, "127.0.0.1", 29501), id="a stray address"),
        pytest.param(LaunchFlags(2, 1, "10.0.0.1", 7000), {}, ("flags", 2, 1, "10.0.0.1", 7000), id="flags"),
        pytest.param(LaunchFlags(2, 1), {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "7000"}, ("flags", 2, 1, "10.0.0.1", 7000), id="flags and address"),
        pytest.param(LaunchFlags(2), {"RANK": "1"}, ("flags", 2, 1, "127.0.0.1", 29501), id="number of nodes as a flag, RANK"),
        pytest.param(LaunchFlags(), GUIDE, ("variables", 2, 1, "192.168.1.10", 29500), id="the guide"),
        pytest.param(LaunchFlags(2, 1, "192.168.1.10", 29500), GUIDE, ("variables", 2, 1, "192.168.1.10", 29500), id="both agree"),
        pytest.param(LaunchFlags(), TORCHRUN, ("torchrun", 4, 3, "192.168.1.10", 29500), id="torchrun"),
        pytest.param(
            LaunchFlags(), {**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True"}, ("torchrun", 4, 3, "192.168.1.10", 29501), id="the store has the port"
        ),
        pytest.param(LaunchFlags(nnodes=2, master_port=7000), TORCHRUN, ("torchrun", 4, 3, "192.168.1.10", 7000), id="hosts of torchrun, own port"),
    ],
)
def test_what_each_custom_means(flags: LaunchFlags, environment: dict[str, str], expected: tuple[str, int, int, str, int]) -> None:
    t = launch(flags, environment).topology
    assert (t.source, t.nodes, t.node_rank, t.master_addr, t.master_port) == expected
    assert t.headless == (t.node_rank > 0)


@pytest.mark.parametrize(
    ("flags", "environment", "reason", "says"),
    [
        pytest.param(LaunchFlags(node_rank=1), {}, "launch_contradiction", "node 1 does not exist among 1 node:", id="a rank without nodes"),
        pytest.param(LaunchFlags(2, 2), {}, "launch_contradiction", "numbered 0 to 1", id="rank too large"),
        pytest.param(LaunchFlags(2), {}, "launch_incomplete", "which of the 2 nodes", id="no rank"),
        pytest.param(LaunchFlags(3), GUIDE, "launch_contradiction", "--nnodes 3, but WORLD_SIZE=2", id="nodes"),
        pytest.param(LaunchFlags(2), {"WORLD_SIZE": "1", "RANK": "0"}, "launch_contradiction", "--nnodes 2, but WORLD_SIZE=1", id="a world of one"),
        pytest.param(LaunchFlags(2, 0), GUIDE, "launch_contradiction", "--node-rank 0, but RANK=1", id="rank"),
        pytest.param(LaunchFlags(2, 0), {"RANK": "1"}, "launch_contradiction", "--node-rank 0, but RANK=1", id="rank alone"),
        pytest.param(LaunchFlags(2, 1, "10.0.0.9"), GUIDE, "launch_contradiction", "--master-addr 10.0.0.9, but MASTER_ADDR", id="address"),
        pytest.param(LaunchFlags(master_port=1), GUIDE, "launch_contradiction", "--master-port 1, but MASTER_PORT=29500", id="port"),
        pytest.param(LaunchFlags(), {**GUIDE, "RANK": "2"}, "launch_contradiction", "RANK=2 is not below WORLD_SIZE=2", id="RANK beyond"),
        pytest.param(LaunchFlags(), {"RANK": "1"}, "launch_incomplete", "WORLD_SIZE is not set", id="RANK alone"),
        pytest.param(LaunchFlags(), {"RANK": "1", "WORLD_SIZE": "1"}, "launch_contradiction", "WORLD_SIZE=1", id="RANK of a world of one"),
        pytest.param(LaunchFlags(), {**GUIDE, "MASTER_ADDR": " "}, "launch_incomplete", "MASTER_ADDR is missing", id="three of four"),
        pytest.param(LaunchFlags(), {"WORLD_SIZE": "2"}, "launch_incomplete", "MASTER_ADDR, MASTER_PORT, RANK are missing", id="one of four"),
        pytest.param(LaunchFlags(), {**GUIDE, "MASTER_PORT": "http"}, "launch_value", "MASTER_PORT must be a whole number", id="port is a word"),
        pytest.param(LaunchFlags(), {**GUIDE, "MASTER_PORT": "70000"}, "launch_value", "1 to 65535", id="port too large"),
        pytest.param(LaunchFlags(), {**GUIDE, "WORLD_SIZE": "-2"}, "launch_value", "WORLD_SIZE", id="negative"),
        pytest.param(LaunchFlags(), {**GUIDE, "WORLD_SIZE": "4096"}, "launch_value", "1 to 1024", id="too many"),
        pytest.param(LaunchFlags(), {**TORCHRUN, "LOCAL_RANK": "2"}, "launch_contradiction", "LOCAL_RANK=2", id="local rank"),
        pytest.param(LaunchFlags(), {**TORCHRUN, "LOCAL_WORLD_SIZE": "8"}, "launch_contradiction", "LOCAL_WORLD_SIZE=8", id="local world"),
        pytest.param(LaunchFlags(3), TORCHRUN, "launch_contradiction", "--nnodes 3, but WORLD_SIZE=4", id="torchrun and nodes"),
    ],
)
def test_contradictions_are_named(flags: LaunchFlags, environment: dict[str, str], reason: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        launch(flags, environment)
    assert (caught.value.reason, says in str(caught.value)) == (reason, True), str(caught.value)


@pytest.mark.parametrize("environment", [GUIDE, TORCHRUN])
def test_ranks_that_do_not_divide(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"3 x 1 = 3 ranks .* cannot be spread evenly") as caught:
        launch(environment=environment, tensor=3, pipeline=1)
    assert caught.value.reason == "ranks_do_not_divide"


def test_the_sentence_says_what_is_counted() -> None:
    assert "WORLD_SIZE counts nodes" in launch(environment=GUIDE).sentence
    assert "ranks 4 to 7 of 8; no HTTP here, node 0 at 192.168.1.10:29500 serves" in launch(environment=GUIDE).sentence
    assert "WORLD_SIZE counts processes" in launch(environment=TORCHRUN).sentence


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.data())
def test_each_rank_lives_on_one_node(tensor: int, pipeline: int, nodes: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, nodes - 1))
    if tensor * pipeline % nodes:
        with pytest.raises(ConfigError):
            launch(LaunchFlags(nodes, rank), tensor=tensor, pipeline=pipeline)
        return
    t = launch(LaunchFlags(nodes, rank), tensor=tensor, pipeline=pipeline).topology
    assert [r for node in range(nodes) for r in t.ranks_of_node(node)] == list(range(tensor * pipeline))
    assert all(r in t.ranks_of_node(t.node_of_rank(r)) for r in range(t.ranks))
    assert t.local_ranks == t.ranks_of_node(rank)


_TEXTS = st.one_of(st.integers(-2, 70000).map(str), st.sampled_from(["", " 2 ", "٣", "1e3", "node-a", "1_0"]), st.text(max_size=8))
_NUMBERS = st.one_of(st.none(), st.integers(-1, 6))


@given(st.dictionaries(st.sampled_from((*FOUR, *PER_PROCESS)), _TEXTS), st.builds(LaunchFlags, _NUMBERS, _NUMBERS, st.none(), _NUMBERS))
def test_whatever_is_set_gives_a_whole_topology_or_a_reason(environment: dict[str, str], flags: LaunchFlags) -> None:
    try:
        t = launch(flags, environment).topology
    except ConfigError as error:
        reason = error.reason
    else:
        reason = "" if 0 <= t.node_rank < t.nodes and t.ranks % t.nodes == 0 and t.master_addr else "incomplete topology"
    assert reason in ("", "launch_value", "launch_incomplete", "launch_contradiction", "ranks_do_not_divide")


@given(st.integers(1, 4), st.data())
def test_the_guide_and_the_flags_say_the_same(nodes: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, nodes - 1))
    variables = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "7000", "RANK": str(rank), "WORLD_SIZE": str(nodes)}
    by_variables = launch(environment=variables, tensor=12).topology
    by_flags = launch(LaunchFlags(nodes, rank, "10.0.0.1", 7000), tensor=12).topology
    assert (by_variables.nodes, by_variables.node_rank, by_variables.local_ranks) == (by_flags.nodes, by_flags.node_rank, by_flags.local_ranks)
