"""Options and variables of vLLM-SR that choose containers and clusters: taken and said to have no effect, or refused where they cannot be met."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from headway.errors import ConfigError

_Command = TypeVar("_Command", bound=Callable[..., Any])
IGNORED_VARIABLES = (
    "VLLM_SR_STACK_NAME", "VLLM_SR_IMAGE", "DASHBOARD_PLATFORM", "CONTAINER_RUNTIME", "VLLM_SR_RUNTIME_CONFIG_PATH", "VLLM_SR_SOURCE_CONFIG_PATH",
    "VLLM_SR_RUNTIME_STATUS_DIR", "VLLM_SR_RECIPE_ENV_ALLOWLIST",
)  # fmt: skip
_CLUSTER_OPTIONS = ("--namespace", "--context", "--profile", "--chart-dir")
_NOTED = "headway.ignored"


def ignored_options(*names: str, flags: Sequence[str] = ()) -> Callable[[_Command], _Command]:
    """`names` take a value, `flags` none. The command says so by `tell_ignored`."""

    def add(command: _Command) -> _Command:
        for name in names:
            command = click.option(name, hidden=True, expose_value=False, callback=_note)(command)
        for name in flags:
            command = click.option(name, is_flag=True, default=None, hidden=True, expose_value=False, callback=_note)(command)
        return command

    return add


def place_options(command: _Command) -> _Command:
    """`--target` and what belongs to a cluster: this router is a process of this machine."""
    for name in _CLUSTER_OPTIONS:
        command = click.option(name, hidden=True, expose_value=False, callback=_refuse_cluster)(command)
    target = click.Choice(["docker", "kubernetes", "k8s"])
    return click.option("--target", type=target, hidden=True, expose_value=False, callback=_check_target)(command)


def gateway_option(command: _Command) -> _Command:
    gateway = click.Choice(["standalone", "extproc"])
    return click.option("--gateway", type=gateway, envvar="VLLM_SR_GATEWAY", hidden=True, expose_value=False, callback=_check_gateway)(command)


def tell_ignored(variables: Sequence[str] = ()) -> None:
    """One warning that names everything that was given and changes nothing."""
    noted = [*click.get_current_context().meta.get(_NOTED, ()), *(name for name in variables if os.environ.get(name))]
    if noted:
        click.echo(f"vllm-sr: warning: no containers here, so these have no effect: {', '.join(noted)}", err=True)


def _note(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None and not context.resilient_parsing:
        context.meta.setdefault(_NOTED, []).append(option.opts[0])


def _refuse_cluster(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        raise click.UsageError(f"{option.opts[0]} applies to --target kubernetes only, and this router runs as a process of this machine.")


def _check_target(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value in ("kubernetes", "k8s"):
        raise ConfigError("--target kubernetes is not built", reason="not_built", param="target", fix="Run `vllm-sr serve` inside a pod of your own.")
    _note(context, option, value)


def _check_gateway(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value == "extproc":
        raise ConfigError(
            "--gateway extproc is not built: this router is the gateway", reason="not_built", param="gateway", fix="Leave --gateway out; clients talk to 8899."
        )  # fmt: skip
