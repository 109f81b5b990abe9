"""Bring the stack up, say what it serves, keep it until somebody stops it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from headway.artifacts.progress import DownloadBars
from headway.artifacts.resolve import resolve
from headway.compose.demonstration import demonstrate, explanation
from headway.compose.stack import ROUTER, ProcessDeclaration, example_requests
from headway.compose.supervisor import Health, Supervisor, stop_on_signals

_NUMBER = re.compile(r"\d+(\.\d+)?")


class StartView:
    """The bar of the process that is starting; afterwards its log lines."""

    def __init__(self, console: Console):
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[stage]}"), TimeElapsedColumn(), console=console
        )
        self._tasks: dict[str, TaskID] = {}
        self._stages: dict[str, str] = {}
        self._ready = False
        self.problems: dict[str, str] = {}

    def start(self) -> None:
        self._progress.start()

    def close(self) -> None:
        """No more bars; log lines are shown from now on."""
        self._progress.stop()
        self._ready = True

    def health(self, name: str, health: Health) -> None:
        """Show where a process is. Without a terminal each new stage is one line, however its numbers change."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=1.0, stage="")
        self._progress.update(self._tasks[name], completed=health.progress, stage=health.stage)
        if health.problem is not None:
            self.problems[name] = health.problem
        if not self._console.is_terminal and self._stages.get(name) != (words := _NUMBER.sub("", health.stage)):
            self._stages[name] = words
            self._console.print(f"{name}: {health.stage}")

    def line(self, name: str, line: str) -> None:
        if self._ready:
            self._console.print(f"[dim]{name} |[/dim] {escape(line)}", highlight=False, soft_wrap=True)


def up(stack: Sequence[ProcessDeclaration], console: Console, demonstration: str = "") -> None:
    """Fetch the models, start the processes, print what is served, return after SIGINT, SIGTERM or SIGHUP. When a router is among the processes, it
    is asked `demonstration`, and what it did is explained.

    All processes are gone when this returns or raises. Raises ArtifactError, PortInUseError, ProcessEndedError.
    """
    began = time.monotonic()
    view = StartView(console)
    supervisor = Supervisor(on_line=view.line, on_health=view.health)
    with DownloadBars(console) as bars:
        for declaration in stack:
            for model in dict.fromkeys(declaration.models):
                resolve(model, accept_licence=declaration.licences, progress=bars)
    with stop_on_signals(supervisor.stopping), supervisor:
        view.start()
        try:
            started = supervisor.start(*stack)
        finally:
            view.close()
        if started:
            ready = time.monotonic() - began
            for router in (each for each in stack if each.name == ROUTER and demonstration):
                lines = explanation(demonstrate(router, demonstration))
                console.print("\n".join(lines), highlight=False, soft_wrap=True, markup=False)
            console.print(summary(stack, ready, view.problems), highlight=False, soft_wrap=True, markup=False)
            supervisor.watch()
        console.print("Stopping ...")
    console.print("Stopped; no process is left.")


def summary(stack: Sequence[ProcessDeclaration], seconds: float, problems: Mapping[str, str]) -> str:
    """What is served where, requests to paste, and what is wrong with a process (`problems` by name)."""
    rows = [f"\nHeadway is up ({seconds:.1f} s).\n"]
    rows += [f"  {declaration.base_url}  {declaration.serves}" for declaration in stack]
    rows += [f"\nNot all of {name} works: {problem}" for name, problem in problems.items()]
    examples = [example for declaration in stack for example in example_requests(declaration)]
    rows += ["\nTry it from another terminal:\n", *(f"  {example}\n" for example in examples), "Ctrl-C stops everything."]
    return "\n".join(rows)
