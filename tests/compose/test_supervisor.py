"""Processes start in order, are watched, and none is left behind, whatever happens to whom."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from headway.compose.stack import ProcessDeclaration
from headway.compose.supervisor import (
    Health,
    PortInUseError,
    ProcessEndedError,
    Supervisor,
    ask_health,
    stop_on_signals,
)
from headway.host.child_process import Child

SCRIPT = str(Path(__file__).with_name("scripted_process.py"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def declared(name: str = "engine", *more: str, port: int | None = None) -> ProcessDeclaration:
    port = port or free_port()
    origin = f"http://127.0.0.1:{port}"
    return ProcessDeclaration(name, (sys.executable, SCRIPT, str(port), *more), "127.0.0.1", port, f"{origin}/health", f"{origin}/v1")


def failing(code: str) -> ProcessDeclaration:
    return replace(declared(), command=(sys.executable, "-c", code))


def eventually(what: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_start_waits_until_ready_and_shows_the_stages() -> None:
    seen: list[Health] = []
    with Supervisor(on_health=lambda name, health: seen.append(health)) as supervisor:
        assert supervisor.start(declared("engine", "2"))
        assert [health.stage for health in seen if health.stage != "starting"] == ["loading", "loading", "ready"]
        assert seen[-2].progress == 1.0
        [child] = supervisor._children
        assert child.exit_code is None
    assert gone(child.pid)


def test_processes_start_side_by_side_and_all_are_waited_for() -> None:
    seen: list[tuple[str, str]] = []
    with Supervisor(on_health=lambda name, health: seen.append((name, health.stage))) as supervisor:
        assert supervisor.start(declared("slow", "4"), declared("quick"))
        assert seen[-1] == ("slow", "ready")
        assert ("quick", "ready") in seen
        assert len(supervisor._children) == 2


def test_a_port_in_use_starts_nothing() -> None:
    with socket.socket() as taken, Supervisor() as supervisor:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = replace(declared("other", port=port), port_flag="--other-port")
        beside = replace(declared("beside"), port_flag="--other-port", other_places=(("127.0.0.1", port),))
        for declaration in (other, beside):
            with pytest.raises(PortInUseError, match=f"127.0.0.1:{port}.*--other-port"):
                supervisor.start(declared("free"), declaration)
        assert supervisor._children == []


def test_a_runtime_says_how_far_it_is_and_what_will_stay_wrong() -> None:
    declaration = declared("runtime", "0", "no family")
    with Supervisor() as supervisor:
        assert supervisor.start(declaration)
        assert ask_health(declaration.health_url) == Health(False, "degraded: no family", 0.5, "no family")


def test_a_process_that_ends_while_starting_says_why() -> None:
    with Supervisor() as supervisor, pytest.raises(ProcessEndedError, match=r"(?s)exit code 3.*the reason is this") as caught:
        supervisor.start(failing("print('the reason is this'); raise SystemExit(3)"))
    assert caught.value.reason == "process_ended"


def test_only_the_last_lines_are_kept() -> None:
    with Supervisor() as supervisor, pytest.raises(ProcessEndedError) as caught:
        supervisor.start(failing("[print('line', i) for i in range(100)]; raise SystemExit(1)"))
    assert "line 99" in caught.value.message
    assert "line 79" not in caught.value.message


def test_a_process_that_is_killed_later_stops_the_watch() -> None:
    with Supervisor() as supervisor:
        assert supervisor.start(declared())
        os.kill(supervisor._children[0].pid, signal.SIGKILL)
        with pytest.raises(ProcessEndedError, match=r"(?s)killed by SIGKILL.*listening"):
            supervisor.watch()


def test_an_error_in_the_second_stops_the_first() -> None:
    started: list[Child] = []

    def both() -> None:
        with Supervisor() as supervisor:
            assert supervisor.start(declared("first"))
            started.extend(supervisor._children)
            supervisor.start(failing("raise SystemExit(1)"))

    with pytest.raises(ProcessEndedError):
        both()
    assert gone(started[0].pid)


def test_a_port_that_is_taken_is_refused_before_a_process_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with Supervisor() as supervisor, pytest.raises(PortInUseError, match="--port"):
            supervisor.start(declared(port=taken.getsockname()[1]))
        assert supervisor._children == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_watch_and_the_handlers_are_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    supervisor = Supervisor()
    with stop_on_signals(supervisor.stopping), supervisor:
        assert supervisor.start(declared())
        signal.raise_signal(number)
        supervisor.watch()
        child = supervisor._children[0]
    assert gone(child.pid)
    assert signal.getsignal(number) == before


def test_stop_while_starting() -> None:
    with Supervisor() as supervisor:
        supervisor.stopping.set()
        assert supervisor.start(declared("engine", "1000000")) is False


def test_a_process_that_ignores_sigterm_is_killed_with_what_it_started() -> None:
    code = """
        import signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("helper", helper.pid, flush=True)
        time.sleep(600)
    """
    child = Child("stubborn", (sys.executable, "-c", textwrap.dedent(code)))
    try:
        assert eventually(lambda: bool(child.last_lines()))
        helper = int(child.last_lines()[0].split()[1])
    finally:
        child.stop(grace=0.1)
    assert child.exit_code == -signal.SIGKILL
    assert eventually(lambda: gone(helper))


def test_children_die_with_a_parent_that_is_killed() -> None:
    code = """
        import sys, time
        from headway.host.child_process import Child
        child = Child("sleeper", (sys.executable, "-c", "import time; time.sleep(600)"))
        print(child.pid, flush=True)
        time.sleep(600)
    """
    with subprocess.Popen((sys.executable, "-c", textwrap.dedent(code)), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    assert eventually(lambda: gone(pid))


def test_health_of_nobody_and_of_a_stranger() -> None:
    assert ask_health(f"http://127.0.0.1:{free_port()}/health") == Health(ready=False)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        assert ask_health(f"http://127.0.0.1:{stranger.getsockname()[1]}/health").ready is False
