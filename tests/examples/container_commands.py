"""The command of a container, read by the parser of its own program: a flag that does not exist fails here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.cli.serve_config import serve_config
from headway.cli.sr import vllm_sr
from headway.cli.srun_config import srun_config
from headway.http.shutdown import _LAST_WORDS_SECONDS
from headway.router.process.run import _CLOSE_SECONDS
from headway.router.process.settings import ServeSettings
from headway.runtime.worker import _DEVICE_STOP_SECONDS
from headway.server.run import _ENGINE_STOP_SECONDS


@dataclass(frozen=True)
class Command:
    """`port` is None for the router, whose configuration has it. `ending_seconds`: from SIGTERM to the end of the process, at most."""

    program: str
    host: str | None
    port: int | None
    ending_seconds: float


def accepted(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Command:
    """Fails for what the program refuses or warns of."""
    program, subcommand, *rest = words
    assert subcommand == "serve"
    warnings: list[str] = []
    if program == "headway":
        server = serve_config(rest, environment or {}, warnings.append).server
        found = Command(program, server.host, server.port, server.shutdown_timeout + _LAST_WORDS_SECONDS + _ENGINE_STOP_SECONDS)
    elif program == "vllm-srun":
        worker = srun_config(rest, environment or {}, warnings.append).settings
        found = Command(program, worker.host, worker.port, worker.shutdown_timeout + _LAST_WORDS_SECONDS + _DEVICE_STOP_SECONDS)
    else:
        assert program == "vllm-sr"
        serve = vllm_sr.get_command(None, "serve")  # type: ignore[arg-type]
        assert serve is not None
        context = serve.make_context("serve", list(rest))
        drain = ServeSettings(context.params["config"], context.params["config"]).drain
        found = Command(program, None, None, drain + _LAST_WORDS_SECONDS + _CLOSE_SECONDS)
    assert warnings == []
    return found
