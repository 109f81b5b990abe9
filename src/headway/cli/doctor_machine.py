"""`headway doctor` without a command: every server that runs here."""

from __future__ import annotations

import json

import click
from rich.console import Console

from headway.cli.doctor_answer import exit_status, spoken
from headway.doctor.collect.own_server import own_port
from headway.doctor.live import Looked, examine_machine
from headway.doctor.report.as_json import report_object
from headway.doctor.report.on_screen import show
from headway.doctor.report.seen import seen_line
from headway.doctor.words import Words

_NOTHING_RUNS = Words("No model server runs here; the machine was looked at.", "本机没有运行模型服务；只检查了机器本身。")


def answer_machine(as_json: bool, language: str | None) -> int:
    """Print a report for each server; return the worst exit status: findings before doubt before health."""
    lang = spoken(language)
    looked = examine_machine()
    if as_json:
        servers = [{"server": _named(entry), **report_object(entry.examined.report, lang)} for entry in looked]
        click.echo(json.dumps({"servers": servers}, ensure_ascii=False, indent=2))
    else:
        console = Console()
        for entry in looked:
            console.rule(_title(entry) or _NOTHING_RUNS.speak(lang))
            if (line := seen_line(entry.examined)) is not None:
                console.print(line.speak(lang), style="dim", highlight=False, markup=False)
            show(entry.examined.report, console, lang)
    statuses = {exit_status(entry.examined.report) for entry in looked}
    return next(status for status in (1, 2, 0) if status in statuses)


def _title(entry: Looked) -> str:
    if entry.server is None:
        return ""
    return f"{entry.server.program}  pid {entry.server.pid}  port {own_port(entry.server) or '-'}"


def _named(entry: Looked) -> dict[str, object] | None:
    server = entry.server
    return None if server is None else {"program": server.program, "pid": server.pid, "port": own_port(server), "ports": list(server.ports)}
