"""Order of hooks, and what a defect in a plugin costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import HeadwayError
from headway.router.plugins.completion import completion
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.running import GuardFailedError
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from tests.router.plugins.rig import Rig, run


class Noting(Plugin):
    def __init__(self, name: str, notes: list[str], breaks: str = "", answers: bool = False) -> None:
        self.type = name
        self._notes, self._breaks, self._answers = notes, breaks, answers

    async def before(self, context: RequestContext) -> Reply | None:
        self._notes.append(f"before {self.type}")
        if self._breaks == "before":
            raise ValueError("secret text")
        return Reply(body=completion("mine", "m"), path="fast_response") if self._answers else None

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        self._notes.append(f"after {self.type}")
        if self._breaks == "after":
            raise ValueError("secret text")
        return reply

    async def failed(self, context: RequestContext, error: Exception) -> None:
        self._notes.append(f"failed {self.type}")


def rig_with(tmp_path: Path, *plugins: Plugin) -> Rig:
    rig = Rig(tmp_path)
    rig.plugins.extend(plugins)  # type: ignore[attr-defined]
    return rig


def test_hooks_run_forth_and_back(tmp_path: Path) -> None:
    notes: list[str] = []
    rig = rig_with(tmp_path, Noting("a", notes), Noting("b", notes, answers=True), Noting("c", notes))
    told = run(lambda: rig.ask("hi"))
    assert (told.text, notes) == ("mine", ["before a", "before b", "after b", "after a"])


@pytest.mark.parametrize("hook", ["before", "after"])
def test_a_defect_is_counted_and_skipped_and_its_text_is_not_logged(tmp_path: Path, hook: str, caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    rig = rig_with(tmp_path, Noting("a", notes, hook), Noting("b", notes))
    told = run(lambda: rig.ask("hi"))
    assert told.text == "answer 1"
    assert notes == ["before a", "before b", "after b", "after a"]
    assert rig.services.metrics.value("llm_plugin_execution_errors", "a") == 1
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_a_guard_with_a_defect_ends_the_request(tmp_path: Path) -> None:
    notes: list[str] = []
    guard = Noting("a", notes, "after")
    guard.fails_closed = True
    rig = rig_with(tmp_path, Noting("first", notes), guard)
    with pytest.raises(GuardFailedError):
        run(lambda: rig.ask("hi"))
    assert notes[-2:] == ["failed a", "failed first"]


def test_plugins_hear_of_a_backend_that_fails(tmp_path: Path) -> None:
    def fails(context: RequestContext) -> Reply:
        raise HeadwayError("gone", reason="no_upstream")

    notes: list[str] = []
    rig = Rig(tmp_path, answers=fails)
    rig.plugins.append(Noting("a", notes))  # type: ignore[attr-defined]
    with pytest.raises(HeadwayError, match="gone"):
        run(lambda: rig.ask("hi"))
    assert notes == ["before a", "failed a"]
