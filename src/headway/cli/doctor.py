"""`headway doctor`: from a symptom to its cause."""

from __future__ import annotations

import sys

import click

from headway.cli.lazy_group import LazyGroup

_COMMANDS = {
    "log": ("headway.cli.doctor_log:log_command", "Read logs and say what went wrong first."),
    "serve": ("headway.cli.doctor_serve:serve_command", "Look at a server that runs: why is it slow, full or silent?"),
    "router": ("headway.cli.doctor_router:router_command", "Walk through a semantic router that runs."),
    "net": ("headway.cli.doctor_net:net_command", "Is HOST:PORT reachable from here, and what speaks there?"),
    "dist": ("headway.cli.doctor_dist:dist_command", "Compare the nodes of a launch from facts that each of them wrote down."),
    "config": ("headway.cli.doctor_config:config_command", "Read a launch command, Compose file, manifest or router configuration."),
    "collect": ("headway.cli.doctor_collect:collect_command", "Write down what is known here, for `doctor log --context`."),
    "report": ("headway.cli.doctor_report:report_command", "One archive for a bug report, masked; sends nothing."),
}
_OLD_NAMES = {"plan": "headway.cli.plan:plan_command"}


@click.group("doctor", cls=LazyGroup, table=_COMMANDS, old_names=_OLD_NAMES, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--lang", "language", type=click.Choice(["en", "zh"]), help="Language of the report (default: the system's).")
@click.pass_context
def doctor_group(ctx: click.Context, as_json: bool, language: str | None) -> None:
    """Find out why something is slow, out of memory or silent: the cause, the evidence, the remedy, the check.

    Without a command: look at the servers that run here and say what is wrong, or that nothing is. Nothing is changed.

    Exit status: 0 healthy, 1 findings, 2 could not tell.
    """
    if ctx.invoked_subcommand is not None:
        return
    from headway.cli.doctor_machine import answer_machine

    sys.exit(answer_machine(as_json, language))
