"""Plans against sums by hand, Little's law, and the simulator, which gets at throughput in another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.bench.simulation.fleet import Fleet, simulate
from headway.bench.simulation.outcome import Promises, outcome
from headway.bench.simulation.reckoned_times import reckoned_times
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import request_trace
from headway.capacity.cluster.choice import Demand, all_reached, reached, recommended
from headway.capacity.cluster.description import Cluster, cluster_of
from headway.capacity.cluster.layout import Layout, layouts, rank_memory
from headway.capacity.cluster.step_cost import Replica
from headway.capacity.device_table import find_device
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement, on_device, placed_weights
from headway.errors import NotBuiltError
from tests.capacity.shapes import any_shape, shape

LLAMA = shape("grouped")
PLACEMENT = Placement()
DEMAND = Demand(100, 50)


def cluster(count: int = 1, devices: int = 8, **node: Any) -> Cluster:
    described = {"count": count, "devices": devices, "memory": "16GiB", "bandwidth": "100GB/s", "flops": "1T"} | node
    links = {"link": {"latency_us": 5, "bandwidth": "10GB/s"}, "network": {"latency_us": 50, "bandwidth": "1GB/s"}}
    return cluster_of({"node": described, **links}, lambda path: {})


def test_one_device_is_reckoned_by_hand() -> None:
    """Everything that one token is multiplied with is read once, and 2 operations each are done."""
    cost = Replica(LLAMA, cluster(devices=1), Layout(1, 1, 1), PLACEMENT).step(4, 400.0, 0.0, 4)
    read, multiply = cost.terms
    assert read.seconds == pytest.approx((LLAMA.active * 2 + 400 * 2 * 2 * 2 * 8 * 2) / 100e9, rel=1e-6)  # 2 layers x 2 heads x (key + value) x 8 x 2 B
    assert multiply.seconds == pytest.approx(2 * LLAMA.active * 4 / 1e12, rel=1e-6)
    assert cost.seconds == max(read.seconds, multiply.seconds)


def test_ranks_divide_the_work_and_pay_for_it() -> None:
    one = Replica(LLAMA, cluster(), Layout(1, 1, 1), PLACEMENT).step(64, 0.0, 0.0, 64)
    two = Replica(LLAMA, cluster(), Layout(2, 1, 1), PLACEMENT).step(64, 0.0, 0.0, 64)
    assert [two.terms[i].seconds for i in (0, 1)] == [pytest.approx(one.terms[i].seconds / 2) for i in (0, 1)]
    reduce = next(term for term in two.terms if term.name == "all-reduce")
    assert reduce.seconds == pytest.approx(2 * 2 * (5e-6 + 64 * 64 * 2 / 10e9))  # twice per layer, one message of recursive doubling
    assert {term.name for term in two.terms} == {"read", "multiply", "all-reduce", "gather logits"}
    staged = Replica(LLAMA, cluster(4, 2), Layout(2, 2, 1), PLACEMENT).step(64, 0.0, 0.0, 0)
    assert next(term for term in staged.terms if term.name == "send").seconds == pytest.approx(50e-6 + 64 * 64 * 2 / 1e9)


@given(st.integers(1, 5), st.integers(1, 8), any_shape())
@settings(max_examples=40, deadline=None)
def test_layouts_use_devices_that_are_there_and_lie_well(nodes: int, devices: int, model: ModelShape) -> None:
    there = cluster(nodes, devices)
    found = layouts(there, model)
    assert len(set(found)) == len(found)
    assert Layout(1, 1, there.total) in found
    for each in found:
        assert each.tp * each.pp * each.dp <= there.total
        assert each.tp <= devices or each.tp % devices == 0
        assert each.dp >= 1


@pytest.mark.parametrize("kind", ["grouped", "tied", "latent", "experts"])
def test_memory_of_tensor_parallel_is_that_of_the_plan_for_cards(kind: str) -> None:
    model, card = shape(kind), find_device("a100-40gb")
    for ranks in (1, 2):
        there = rank_memory(model, Layout(ranks, 1, 1), PLACEMENT, card.memory_bytes, 160, 2048, 256)
        other = on_device(model, card, replace(PLACEMENT, ranks=ranks)).need(160, 1)
        assert there.weights == pytest.approx(other.weights, rel=0.001)
        assert there.fixed == other.activations + other.process
        assert there.sequence <= other.cache <= there.sequence + 16 * model.numbers_per_token(ranks) * 2
        assert there.budget == int(card.memory_bytes * PLACEMENT.utilization)


def test_stages_hold_the_whole_model_between_them() -> None:
    model = shape("grouped", num_hidden_layers=8)
    stages = rank_memory(model, Layout(1, 4, 1), PLACEMENT, 1 << 34, 160, 2048, 256)
    whole = rank_memory(model, Layout(1, 1, 1), PLACEMENT, 1 << 34, 160, 2048, 256)
    assert whole.weights == placed_weights(model, PLACEMENT)
    assert 4 * stages.weights >= whole.weights
    assert stages.sequence * 4 == whole.sequence


@settings(max_examples=40, deadline=None)
@given(any_shape(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 400), st.integers(1, 400), st.sampled_from([None, 0.005, 0.1]))
def test_littles_law_and_promises_hold(model: ModelShape, nodes: int, devices: int, prompt: int, output: int, itl: float | None) -> None:
    """Sequences under way = rate x time of each (Little 1961): tokens/s x gap = the sequences of all batches."""
    for each in all_reached(model, cluster(nodes, devices), PLACEMENT, Demand(prompt, output, itl=itl)):
        if each.obstacle is None:
            assert each.output_tokens_per_second * each.itl == pytest.approx(each.layout.dp * each.layout.pp * each.batch)
            assert each.batch * each.layout.pp <= each.memory.sequences
            assert itl is None or each.itl <= itl
            assert 0 <= each.bubble < 1


@settings(max_examples=30, deadline=None)
@given(any_shape(), st.integers(1, 4))
def test_faster_devices_are_never_slower(model: ModelShape, devices: int) -> None:
    slow = all_reached(model, cluster(1, devices), PLACEMENT, DEMAND)
    fast = {each.layout: each for each in all_reached(model, cluster(1, devices, bandwidth="200GB/s", flops="2T"), PLACEMENT, DEMAND)}
    for each in slow:
        assert fast[each.layout].output_tokens_per_second >= each.output_tokens_per_second * (1 - 1e-9)


def test_all_batches_under_way_share_the_memory_of_a_stage() -> None:
    layout = Layout(1, 2, 1)
    empty = rank_memory(LLAMA, layout, PLACEMENT, 0, DEMAND.prompt + DEMAND.output, 2048, 256)
    memory = (empty.weights + empty.fixed + 10.5 * empty.sequence) / PLACEMENT.utilization
    found = reached(LLAMA, cluster(1, 2, memory=f"{memory:.0f}B"), layout, PLACEMENT, DEMAND)
    assert (found.memory.sequences, found.batch, found.limited_by) == (10, 5, "memory")


def test_the_best_comes_first_and_what_cannot_be_says_why() -> None:
    found = all_reached(LLAMA, cluster(1, 3), PLACEMENT, DEMAND)
    best = recommended(found)
    assert best is not None
    assert best.output_tokens_per_second == max(each.output_tokens_per_second for each in found)
    assert "heads (8) must be divisible" in str(next(each.obstacle for each in found if each.layout.tp == 3))
    small = all_reached(LLAMA, cluster(1, 1, memory="1MiB"), PLACEMENT, DEMAND)
    assert recommended(small) is None
    assert "needs" in str(small[0].obstacle)
    late = all_reached(LLAMA, cluster(1, 1), PLACEMENT, replace(DEMAND, itl=1e-9))
    assert "later than promised" in str(late[0].obstacle)
    assert recommended([]) is None


def test_the_simulation_of_a_plan_reaches_what_the_plan_says() -> None:
    model = shape("grouped", num_hidden_layers=16, hidden_size=1024, num_attention_heads=16, intermediate_size=4096)
    there, demand = cluster(1, 1, memory="4GiB", step_overhead_us=1000), Demand(200, 100)
    plan = reached(model, there, Layout(1, 1, 1), PLACEMENT, demand)
    times = reckoned_times(Replica(model, there, Layout(1, 1, 1), PLACEMENT), plan)
    count = 12 * plan.batch
    trace = request_trace(np.zeros(count), [demand.prompt] * count, [demand.output] * count)
    fleet = Fleet(times, ReplicaLimits(times.origin["num_blocks"], max_num_seqs=plan.batch, max_num_batched_tokens=2048, enable_prefix_caching=False))
    found = outcome(trace, fleet, simulate(trace, fleet), Promises())
    assert found["output_tokens_per_second"] == pytest.approx(plan.output_tokens_per_second, rel=0.2)
    with pytest.raises(NotBuiltError):
        reckoned_times(Replica(model, there, Layout(1, 2, 1), PLACEMENT), replace(plan, layout=Layout(1, 2, 1)))
