"""What a file would start, judged before it is started."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from headway.doctor.collect.assemble import as_context, context_of_launch, context_of_machine, joined
from headway.doctor.collect.launch_files import launched_by
from headway.doctor.collect.launch_source import launch_text
from headway.doctor.collect.processes import server_program
from headway.doctor.collect.transcript import Transcript
from headway.doctor.examine import Examined, examine_live
from headway.doctor.facts.launch import command_flags
from headway.doctor.planned_on_card import lines_on_card, named_cards
from headway.doctor.planned_start import start_refusal
from headway.doctor.words import Words
from headway.errors import ConfigError

_VALIDATE_SECONDS: Final = 60
_ROUTER_KEYS: Final = re.compile(r"(?m)^(?:providers|routing|listeners|signals|decisions|model_config|vllm_endpoints)\s*:")


@dataclass(frozen=True, slots=True)
class Flags:
    """What the parser of `headway serve` says to a command: `refused` ends a start, `remarks` do not."""

    refused: str = ""
    remarks: tuple[str, ...] = ()


JudgeFlags = Callable[[Sequence[str]], Flags]
"""Words of a command, the program first -> what the parser says to them."""


@dataclass(frozen=True, slots=True)
class Configured:
    """`flags` and `variables`: sentences about flags and variables that nobody knows, or that have another name now."""

    examined: Examined
    flags: Flags
    variables: tuple[str, ...]


def examine_config(file: Path, here: bool | None, judge_flags: JudgeFlags) -> Configured:
    """`here`: the file is meant for this machine, whose memory, cores and ports then count; None = so, but for a manifest.

    Raises DoctorError (`launch_unknown`) when the file starts no server and configures none.
    """
    if _ROUTER_KEYS.search(text := launch_text(file)):
        context = joined(context_of_machine() if here is not False else {}, {"command": f"vllm-sr serve --config {file.name}", "files": {file.name: text}})
        return Configured(examine_live(as_context(context), _validated(file)), Flags(), ())
    start = launched_by(text, file.name)
    here = not start.in_a_cluster if here is None else here
    context = context_of_launch(start, here)
    program = server_program(start.words)
    transcript = Transcript()
    if here and not start.host.get("in_container"):
        _say_port_in_use(context, transcript)
    if here and program == "headway":
        limit = start.host.get("cgroup", {}).get("memory_max_gib")
        if refusal := start_refusal(dict(command_flags(shlex.join(start.words))), start.env, limit):
            transcript.say(f"headway: {refusal}")
    flags = judge_flags(start.words) if program in ("headway", "vllm") else Flags()
    if program == "vllm":
        context, flags = _on_named_card(text, start.words, context, flags, transcript)
    examined = examine_live(as_context(context), transcript)
    if flags.refused:
        verdict = Words(f"The start would be refused: {flags.refused}", f"启动会被拒绝：{flags.refused}")
        examined = replace(examined, report=replace(examined.report, verdict=verdict))
    return Configured(examined, flags, tuple(context.get("env_remarks", ())))


def _on_named_card(text: str, words: Sequence[str], context: dict[str, Any], flags: Flags, transcript: Transcript) -> tuple[dict[str, Any], Flags]:
    """With the cards that the file asks for, and what the start would say about their memory."""
    try:
        cards = named_cards(text)
    except ConfigError as error:
        return context, replace(flags, remarks=(*flags.remarks, f"the memory of the card is not judged: {error.message}"))
    if cards is None:
        return context, flags
    for line in lines_on_card(dict(command_flags(shlex.join(words))), cards):
        transcript.say(line)
    return joined(context, cards.part), flags


def _say_port_in_use(context: Mapping[str, Any], transcript: Transcript) -> None:
    """The line that the start would print when somebody has its port, in the words of Headway's own."""
    flags = dict(command_flags(str(context["command"])))
    port = int(flags["port"]) if flags.get("port", "").isdecimal() else 8000
    for listener in context["host"]["listeners"]:
        if listener["port"] == port:
            owner = f" by process {listener['pid']} ({listener.get('command', '')})" if "pid" in listener else " by process unknown"
            transcript.say(f"Port {port} on {listener['address']} is in use{owner}.")
            break


def _validated(file: Path) -> Transcript:
    """What the router's own validator says, as lines of a log. It runs as the command that people run, so that there is
    one validator and the doctor stays beside the router."""
    transcript = Transcript()
    command = [sys.executable, "-m", "headway.cli.sr", "config", "validate", "--config", str(file), "--offline"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_VALIDATE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        transcript.say(f"vllm-sr config validate gave no answer within {_VALIDATE_SECONDS} s")
        return transcript
    transcript.say((done.stdout + done.stderr).decode("utf-8", "replace"))
    return transcript
