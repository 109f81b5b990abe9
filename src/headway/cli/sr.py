"""`vllm-sr`: the commands of the semantic router. Each is imported when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from headway import __version__
from headway.cli.lazy_group import LazyGroup, run_program

# name -> (module:attribute, help)
_COMMANDS = {
    "serve": ("headway.cli.sr_serve:serve_command", "Route requests as a configuration says."),
    "status": ("headway.cli.sr_status:status_command", "Show the routers that run here."),
    "logs": ("headway.cli.sr_status:logs_command", "Show the log of a router."),
    "stop": ("headway.cli.sr_status:stop_command", "Stop a router."),
    "config": ("headway.cli.sr_config:config_group", "Check, migrate, show and change configurations."),
    "route": ("headway.cli.sr_route:route_group", "Preview a routing decision, or probe a route."),
    "test": ("headway.cli.sr_test:test_command", "Check that prompts are routed as a file expects."),
    "request": ("headway.cli.sr_request:request_group", "Send one request through a router."),
    "optimize": ("headway.cli.sr_optimize:optimize_group", "Train and judge selectors that learn from rows."),
    "spend": ("headway.cli.sr_spend:spend_command", "Show tokens and cost by API key and model."),
    "demo-heads": ("headway.cli.sr_demo_heads:demo_heads_command", "Train the demonstration heads for signals that models answer."),
    "instance": ("headway.cli.sr_instance:instance_group", "Inspect all routers that run here."),
    "recipe": ("headway.cli.sr_recipe:recipe_group", "List, read, check and change single recipes of a router."),
    "benchmark": ("headway.cli.sr_benchmark:benchmark_command", "Put a load on a router and measure it."),
    "storage": ("headway.cli.sr_storage:storage_group", "See to what a router keeps: cached answers and documents."),
    "completion": ("headway.cli.sr_completion:completion_group", "Completion of commands in the shell."),
}
# Names of earlier versions.
_OLD_NAMES = {
    "eval": "headway.cli.sr_route:preview_command",
    "chat": "headway.cli.sr_request:chat_command",
    "validate": "headway.cli.sr_config_validate:validate_command",
    "init": "headway.cli.sr_config_init:init_command",
}
_NOT_BUILT = ("dashboard", "model", "sim", "drun")
_INSTEAD = {
    "dashboard": "`vllm-sr status` and `vllm-sr instance list` show what runs, the metrics address feeds Grafana, `vllm-sr route preview` explains a decision.",
    "model": "`headway inspect` tells what is in a model; deployments fetch theirs when they start.",
    "sim": "`vllm-sr test` routes prompts through a configuration without any model.",
}


@click.group(
    "vllm-sr", cls=LazyGroup, table=_COMMANDS, not_built=_NOT_BUILT, instead=_INSTEAD, old_names=_OLD_NAMES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "--version", message="vllm-sr version: %(version)s")
def vllm_sr() -> None:
    """Choose the right model for each request, by declared policy, and say why."""


def main() -> None:
    run(sys.argv[1:])


def run(words: Sequence[str]) -> None:
    run_program(vllm_sr, words, program="vllm-sr", says="vllm-sr")


if __name__ == "__main__":
    main()
