"""The scheduler in a world that notices every wrongly shared or lost block (scheduler_world.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.scheduler import SchedulerLimits
from tests.engine.scheduler_world import World

LIMITS = SchedulerLimits(max_num_batched_tokens=64, max_num_seqs=8)

JOBS = st.lists(
    st.tuples(
        st.integers(1, 40),  # prompt length
        st.integers(1, 20),  # output length
        st.integers(0, 3),  # which prefix family: equal families share their prompts' beginning
        st.integers(0, 12),  # step at which it arrives
        st.integers(-2, 2),  # priority
        st.sampled_from([None, None, None, "salt"]),
        st.integers(0, 30),  # steps after arrival at which it is aborted; above 24 = never
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(
    jobs=JOBS,
    budget=st.integers(1, 80),
    seqs=st.integers(1, 6),
    spare_blocks=st.integers(0, 12),
    block_size=st.sampled_from([1, 2, 4, 16]),
    policy=st.sampled_from(["fcfs", "priority"]),
    caching=st.booleans(),
    threshold=st.sampled_from([0, 3]),
    reserve=st.booleans(),
    watermark=st.sampled_from([0.0, 0.3]),
    interval=st.integers(1, 3),
)
def test_any_load_ends_right_and_leaves_nothing_behind(
    jobs, budget, seqs, spare_blocks, block_size, policy, caching, threshold, reserve, watermark, interval
) -> None:
    limits = SchedulerLimits(
        budget, seqs, threshold, policy=policy, reserve_full_prompt=reserve, watermark=watermark, prefill_interval=interval
    )
    world = World(limits, 2 + 60 // block_size + spare_blocks, block_size, caching=caching)
    arrivals: dict[int, list[int]] = {}
    aborts: dict[int, list[int]] = {}
    for i, job in enumerate(jobs):
        arrivals.setdefault(job[3], []).append(i)
        if job[6] <= 24:
            aborts.setdefault(job[3] + job[6], []).append(i)
    sequences = {}
    for step in range(40):
        for i in arrivals.get(step, []):
            length, output, family, _, priority, salt, _ = jobs[i]
            prompt = [(family * 7 + k) % 11 for k in range(length)]
            sequences[i] = world.add(prompt, output, priority=priority, salt=salt)
        for i in aborts.get(step, []):
            world.scheduler.finish(sequences[i], "abort")
        if world.scheduler.has_work:
            world.step()
    world.run()
    world.check_outputs()


def test_every_decoding_sequence_gets_its_token_while_a_long_prompt_is_read() -> None:
    world = World(replace(LIMITS, max_num_batched_tokens=16), 200, 4)
    world.add([1, 2, 3], 30)
    world.step()
    world.add(list(range(100, 250)), 2)
    while world.all[1].num_output == 0:
        world.step()
        assert world.log[-1][0] == 1, "the decoding sequence was left out of a step"
        assert sum(world.log[-1].values()) == 16 or world.all[1].num_output, "the long prompt left budget unused"


def test_short_prompts_overtake_the_rest_of_a_long_one() -> None:
    world = World(replace(LIMITS, max_num_batched_tokens=256), 700, 16)
    world.add([k % 97 for k in range(4096)], 4)
    world.step()
    for i in range(3):
        world.add([i] * 10, 4)
    world.step()
    assert world.log[0] == {0: 256}, "alone, the long prompt uses the whole budget"
    assert {i: world.log[1][i] for i in (1, 2, 3)} == {1: 10, 2: 10, 3: 10}
    assert world.log[1][0] == 256 - 30, "what the short ones leave goes back to the long one"


def test_two_long_prompts_share_and_a_later_short_one_still_gets_in() -> None:
    world = World(replace(LIMITS, max_num_batched_tokens=64), 400, 16)
    world.add([1] * 1000, 2, skip_cache=True)
    world.add([2] * 1000, 2, skip_cache=True)
    world.add([3] * 8, 2)
    world.step()
    assert set(world.log[0]) == {0, 1, 2}
    assert world.log[0][2] == 8
    assert sum(world.log[0].values()) == 64


def test_long_prefill_threshold_caps_one_prompt_only_while_others_want_tokens() -> None:
    world = World(replace(LIMITS, long_prefill_threshold=10), 400, 16)
    world.add([1] * 60, 2)
    world.step()
    assert world.log[0] == {0: 60}
    world.run()
    world.add([2] * 50, 2)
    world.add([3] * 50, 2)
    world.step()
    assert world.log[-1] == {1: 10, 2: 50} or world.log[-1] == {1: 14, 2: 50}


def test_preemption_takes_the_newest_and_it_resumes_before_later_arrivals() -> None:
    world = World(LIMITS, 1 + 6, 4)
    first, second = world.add([1] * 8, 12), world.add([2] * 8, 12)
    third = world.add([3] * 4, 2)
    while not second.preemptions:
        world.step()
    assert first.preemptions == 0
    assert next(iter(world.scheduler.waiting)) is second
    world.run()
    assert second.times.scheduled <= third.times.scheduled
    world.check_outputs()


def test_priority_policy_preempts_the_least_urgent() -> None:
    world = World(replace(LIMITS, policy="priority"), 1 + 6, 4)
    idle = world.add([1] * 8, 12, priority=5)
    urgent = world.add([2] * 8, 12, priority=0)
    world.run()
    assert idle.preemptions >= 1
    assert urgent.preemptions == 0
    world.check_outputs()


def test_preempted_work_is_mostly_found_again_in_the_cache() -> None:
    world = World(LIMITS, 1 + 6, 4)
    world.add([1] * 8, 12)
    victim = world.add([2] * 8, 12)
    while not victim.preemptions:
        world.step()
    first = True
    while world.scheduler.has_work:
        waited = victim.num_computed == 0
        plan = world.step()
        assert plan.prefix_queries == 0, "the statistics are about prompts, not about blocks found again"
        if first and waited and victim.num_computed:
            first = False
            assert next(c.start for c in plan.chunks if c.sequence is victim) > 0
    assert not first
    world.check_outputs()


def test_a_prompt_that_must_not_read_the_cache_is_no_lookup() -> None:
    world = World(LIMITS, 40, 4)
    world.add(list(range(16)), 3)
    assert world.step().prefix_queries == 16
    world.add(list(range(16)), 3, skip_cache=True)
    plan = world.step()
    assert (plan.prefix_queries, plan.prefix_hits) == (0, 0)
    assert next(c for c in plan.chunks if c.sequence is world.all[1]).start == 0


def test_an_exact_fit_is_admitted_and_two_of_them_take_turns() -> None:
    world = World(SchedulerLimits(256, 8), 1 + 8, 16)
    for family in (1, 2):
        world.add([family] * 100, 28)
    world.run()
    world.check_outputs()


def test_sequences_of_one_step_share_the_prefix_that_the_first_of_them_computes() -> None:
    world = World(LIMITS, 40, 4)
    prompt = list(range(16))
    world.add(prompt, 3)
    world.add(prompt, 3)
    world.step()
    assert world.log[0] == {0: 16, 1: 4}, "the second computes only its last block"
    world.run()
    world.check_outputs()


def test_salted_requests_share_nothing() -> None:
    world = World(LIMITS, 40, 4)
    for salt in ("a", "b"):
        world.add(list(range(16)), 3, salt=salt)
    world.step()
    assert world.log[0] == {0: 16, 1: 16}


def test_without_chunked_prefill_a_prompt_is_read_in_one_step() -> None:
    world = World(replace(LIMITS, chunked_prefill=False), 100, 4)
    world.add([1] * 40, 2)
    world.add([2] * 40, 2)
    world.step()
    assert world.log[0] == {0: 40}
    world.step()
    assert world.log[1] == {0: 1, 1: 40}


def test_finish_is_idempotent_and_works_from_the_queue() -> None:
    world = World(LIMITS, 10, 4)
    waiting = world.add([1] * 4, 4)
    world.scheduler.finish(waiting, "abort")
    world.scheduler.finish(waiting, "error")
    assert waiting.finish_reason == "abort"
    world.check_empty()


@pytest.mark.parametrize("aborted_after", range(7))
def test_five_hundred_aborts_return_every_block(aborted_after: int) -> None:
    world = World(replace(LIMITS, max_num_batched_tokens=16), 1 + 64, 4)
    for i in range(72):
        sequence = world.add([i % 3] * 30, 20)
        for _ in range(aborted_after):
            world.step()
        world.scheduler.finish(sequence, "abort")
        world.check_empty()
    last = world.add([9] * 200, 56)
    world.run()
    assert last.finish_reason == "length"
    world.check_outputs()


def test_a_watermark_keeps_blocks_free_for_those_that_run() -> None:
    limits = replace(LIMITS, watermark=0.25)
    world = World(limits, num_blocks=1 + 19, block_size=4)  # 5 of 20 stay free
    world.add(list(range(40)), 4)  # 10 blocks, and one more for its output
    world.add(list(range(100, 124)), 4)  # 6 blocks
    world.step()
    assert len(world.scheduler.running) == 1, "the second would leave fewer than 5"
    world.run()
    world.check_outputs()
    alone = World(replace(LIMITS, watermark=0.9), num_blocks=1 + 19, block_size=4)
    alone.add(list(range(60)), 4)
    alone.run()
    alone.check_outputs()


def test_a_prompt_may_begin_with_its_first_chunk() -> None:
    for reserve, running in ((True, 1), (False, 2)):
        world = World(replace(LIMITS, max_num_batched_tokens=16, reserve_full_prompt=reserve), num_blocks=1 + 12, block_size=4)
        world.add(list(range(12)), 20)  # 3 blocks at first, 8 in the end
        world.add(list(range(100, 140)), 2)  # 10 blocks
        world.step()
        world.step()
        assert len(world.scheduler.running) == running
        world.run()
        world.check_outputs()


def test_prefills_keep_their_distance_while_something_decodes() -> None:
    world = World(replace(LIMITS, max_num_batched_tokens=11, prefill_interval=4), num_blocks=100, block_size=4)
    world.add(list(range(30)), 30)
    for _ in range(3):
        world.step()
    assert [sum(share.values()) for share in world.log] == [11, 11, 8], "nothing decodes yet: no waiting"
    world.add(list(range(100, 125)), 3)
    for _ in range(12):
        world.step()
    assert [share.get(1, 0) for share in world.log[3:15]] == [0, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0, 5]
    world.run()
    world.check_outputs()
