"""Requests that are not done in time end, wherever they are, and give everything back. The clock is the test's."""

from __future__ import annotations

from headway.engine.outputs import OutputKind
from headway.errors import DeadlineError
from tests.engine.scripted_core import ScriptedCore, say


def test_a_running_request_ends_at_its_deadline_and_others_go_on() -> None:
    world = ScriptedCore(say("abcdefghijkl"))
    world.add("late", max_tokens=10, deadline=5.0, output_kind=OutputKind.DELTA)
    world.add("other", max_tokens=10, deadline=50.0)
    outputs = []
    while world.core.has_work:
        outputs += world.core.step()
        world.now += 1.0
    late = [o for o in outputs if o.request_id == "late"]
    assert "".join(o.outputs[0].text for o in late) == "abcde"
    assert late[-1].finished
    assert late[-1].outputs[0].finish_reason == "abort"
    assert isinstance(late[-1].failure, DeadlineError)
    assert late[-1].failure.reason == "deadline_exceeded"
    assert "after 5 generated tokens" in str(late[-1].error)
    (other,) = [o for o in outputs if o.request_id == "other" and o.finished]
    assert (other.outputs[0].text, other.outputs[0].finish_reason, other.failure) == ("abcdefghij", "length", None)
    assert [r.finish_reason for r in world.requests] == ["abort", "length"]
    world.check_empty()


def test_a_waiting_request_ends_without_having_run() -> None:
    world = ScriptedCore(say("abcdefghijkl"), max_num_seqs=1)
    world.add("first", max_tokens=8)
    world.add("waits", max_tokens=8, n=3, temperature=1.0, deadline=3.0)
    outputs = []
    while world.core.has_work:
        outputs += world.core.step()
        world.now += 1.0
    (late,) = [o for o in outputs if o.request_id == "waits"]
    assert [o.finish_reason for o in late.outputs] == ["abort"]
    assert world.runner.calls == 8
    world.check_empty()


def test_a_deadline_that_is_over_at_once_costs_no_step() -> None:
    world = ScriptedCore(say("abc"))
    world.add("a", max_tokens=3, deadline=0.0)
    (output,) = world.core.step()
    assert isinstance(output.failure, DeadlineError)
    assert world.runner.calls == 0
    world.check_empty()


def test_the_deadline_of_an_ended_request_does_not_hit_a_later_one_of_its_name() -> None:
    world = ScriptedCore(say("abcdefgh"))
    world.add("name", max_tokens=2, deadline=10.0)
    world.run()
    world.now = 9.0
    world.add("name", max_tokens=6, deadline=100.0)
    world.now = 11.0
    assert world.run()["name"][-1].outputs[0].finish_reason == "length"
