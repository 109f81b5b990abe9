"""What a file would start, judged before it is started."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.doctor.collect.assemble import as_context, context_of_launch, context_of_machine, joined
from headway.doctor.collect.transcript import Transcript
from headway.doctor.examine import Examined, examine_live
from headway.doctor.facts.launch import command_flags
from headway.errors import DoctorError

_VALIDATE_SECONDS: Final = 60
_ROUTER_KEYS: Final = re.compile(r"(?m)^(?:providers|routing|listeners|signals|decisions|model_config|vllm_endpoints)\s*:")


def examine_config(file: Path, here: bool) -> Examined:
    """`here`: the file is meant for this machine, whose memory, cores and ports then count.

    Raises DoctorError (`launch_unknown`) when the file starts no server and configures none.
    """
    try:
        text = file.read_text("utf-8", "replace")
    except OSError as error:
        raise DoctorError(f"{file} cannot be read: {error}", reason="launch_unknown", fix="Give the path of a text file.") from error
    if _ROUTER_KEYS.search(text):
        context = joined(context_of_machine() if here else {}, {"command": f"vllm-sr serve --config {file.name}", "files": {file.name: text}})
        return examine_live(as_context(context), _validated(file))
    context = context_of_launch(str(file), here)
    return examine_live(as_context(context), _port_in_use(context) if here else Transcript())


def _port_in_use(context: Mapping[str, Any]) -> Transcript:
    """The line that the start would print when somebody has its port, in the words of Headway's own."""
    transcript = Transcript()
    flags = dict(command_flags(str(context["command"])))
    port = int(flags["port"]) if flags.get("port", "").isdecimal() else 8000
    for listener in context["host"]["listeners"]:
        if listener["port"] == port:
            owner = f" by process {listener['pid']} ({listener.get('command', '')})" if "pid" in listener else " by process unknown"
            transcript.say(f"Port {port} on {listener['address']} is in use{owner}.")
            break
    return transcript


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
