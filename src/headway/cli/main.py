"""`headway`: the commands. Each is imported when it is used, so that help and version come at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from headway import __version__
from headway.cli.lazy_group import LazyGroup, run_program

# name -> (module:attribute, help). A command that a later version brings stands in _NOT_BUILT.
_COMMANDS = {
    "serve": ("headway.cli.serve:serve_command", "Serve a language model over an OpenAI-compatible API."),
    "up": ("headway.cli.up:up_command", "Fetch the default model, serve it, show how to ask it."),
    "cluster": ("headway.cli.cluster:cluster_group", "Make this machine a node of a Ray cluster, and see what the cluster has."),
    "wait": ("headway.cli.wait:wait_command", "Wait until a server is ready."),
    "status": ("headway.cli.status:status_command", "Show the servers that run on this machine."),
    "stop": ("headway.cli.stop:stop_command", "Stop a server that runs on this machine."),
    "chat": ("headway.cli.chat:chat_command", "Talk to a model that is served."),
    "complete": ("headway.cli.complete:complete_command", "Let a model that is served continue a text."),
    "run-batch": ("headway.cli.run_batch:run_batch_command", "Answer the requests of a file."),
    "inspect": ("headway.cli.inspect:inspect_command", "Show what a model is and whether it fits, from headers only."),
    "plan": ("headway.cli.plan:plan_command", "Say what a model needs and reaches on this machine or a card, before it is loaded."),
    "simulate": ("headway.cli.simulate:simulate_command", "Replay traffic over engines that are not there: latencies, promises kept, cost."),
    "quantize": ("headway.cli.quantize:quantize_command", "Compress a model to 8 or 4 bits, for this and other engines."),
    "eval": ("headway.cli.eval:eval_command", "Say how good a model is, and whether it is still as good as another."),
    "bench": ("headway.cli.bench:bench_group", "Measure throughput and latency."),
    "doctor": ("headway.cli.doctor:doctor_group", "Find out why something is slow, out of memory or silent."),
    "tune": ("headway.cli.tune:tune_command", "Find the flags that serve a model best, by measuring."),
    "env": ("headway.cli.env:env_command", "Show the machine, the versions and which kernels run."),
    "shim": ("headway.cli.shim:shim_group", "Let `vllm` mean Headway in this environment."),
}
_NOT_BUILT = ("collect-env", "launch")


@click.command(
    "headway", cls=LazyGroup, table=_COMMANDS, not_built=_NOT_BUILT, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-v", "--version", message="%(version)s")
def headway() -> None:
    """Serve language models and the small models around them."""


def main() -> None:
    run("headway", sys.argv[1:])


def run(program: str, words: Sequence[str]) -> None:
    """`program` is the name under which it was called."""
    run_program(headway, words, program=program, says="headway")


if __name__ == "__main__":
    main()
