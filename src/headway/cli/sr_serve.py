"""`vllm-sr serve`: run the router in this process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from headway.cli.sr_engine_mode import engine_config
from headway.cli.sr_ignored import IGNORED_VARIABLES, gateway_option, ignored_options, place_options, tell_ignored
from headway.cli.sr_place import config_option, port_offset, state_folder
from headway.errors import ConfigError

_CONTAINER_OPTIONS = (
    "--image", "--router-image", "--envoy-image", "--dashboard-image", "--image-pull-policy", "--restart-policy", "--container-runtime", "--runtime",
)  # fmt: skip
_CONTAINER_FLAGS = ("--minimal/--no-minimal", "--dashboard/--no-dashboard", "--observability/--no-observability", "--readonly", "--replace-active-config")
ALGORITHMS = (
    "static", "random", "latency_aware", "multi_factor", "router_dc", "hybrid", "decision", "knn", "kmeans", "svm", "mlp", "confidence",
)  # fmt: skip
_LEVELS = {
    "debug": "debug", "info": "info", "warn": "warning", "warning": "warning", "error": "error", "dpanic": "critical", "panic": "critical",
    "fatal": "critical",
}  # fmt: skip



def _refuse_profile(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        raise click.UsageError("--runtime-profile was removed: use --max-num-seqs, --max-num-batched-tokens, --batch-window-ms and --enable-shared-context.")


@click.command("serve")
@click.argument("model", required=False)
@config_option
@click.option("-e", "--engine", is_flag=True, help="Serve System One alone, without routing.")
@click.option("--revision", help="Branch, tag or commit of MODEL.")
@click.option("-dp", "--data-parallel-size", type=click.IntRange(min=1), help="Independent workers of the default judgment model.")
@click.option("--device-ids", help="GPUs of those workers, like 0,1: one, or one for each.")
@click.option("--max-num-seqs", type=click.IntRange(min=1), help="Rows in one forward pass.")
@click.option("--max-num-batched-tokens", type=click.IntRange(min=8), help="Tokens in one forward pass.")
@click.option("--batch-window-ms", type=click.FloatRange(0, 1000), help="How long a batch waits for more rows.")
@click.option("--dtype", type=click.Choice(["auto", "float32", "bfloat16", "float16"]), help="Precision of the forward pass.")
@click.option("--enable-shared-context/--no-enable-shared-context", default=None, help="Compute what several questions share once.")
@click.option("--platform", type=click.Choice(["auto", "cpu", "cuda", "rocm"]), envvar="VLLM_SR_PLATFORM", help="Where the default judgment model runs.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), envvar="VLLM_SR_ALGORITHM_OVERRIDE", help="Let every decision choose its model in this way.")
@click.option("--startup-timeout", type=click.FloatRange(min=0, min_open=True), default=1800.0, show_default=True, help="Seconds until it has to be ready.")
@click.option("--log-level", type=click.Choice([*_LEVELS], case_sensitive=False), help="Default: SR_LOG_LEVEL, or info.")
@click.option("-v", "--verbose", is_flag=True, help="The same as --log-level debug.")
@click.option("--recipe-env", multiple=True, metavar="NAME", help="Only these variables may be used in the configuration (repeatable).")
@click.option("--runtime-profile", hidden=True, expose_value=False, callback=_refuse_profile)
@place_options
@gateway_option
@ignored_options(*_CONTAINER_OPTIONS, flags=_CONTAINER_FLAGS)
@click.pass_context
def serve_command(context: click.Context, /, model: str | None, config: Path, engine: bool, **options: Any) -> None:
    """Route requests as a configuration says, until SIGINT or SIGTERM. The configuration is watched: what changes in it is taken up.

    MODEL, a Hub name or an absolute path, replaces the artifact of the default judgment deployment.
    """
    tell_ignored(IGNORED_VARIABLES)
    from headway.cli.sr_run_file import noted_router
    from headway.router.process.overrides import ENGINE_FIELDS, Overrides
    from headway.router.process.run import run_router
    from headway.router.process.settings import ServeSettings

    overrides = Overrides(
        model=model,
        revision=options["revision"],
        engine={name: options[name] for name in ENGINE_FIELDS if options[name] is not None},
        platform=options["platform"],
        replicas=options["data_parallel_size"],
        devices=tuple(filter(None, (options["device_ids"] or "").replace(" ", "").split(","))),
        algorithm=options["algorithm"],
        engine_mode=engine or None,
    )
    if engine and not config.exists() and context.get_parameter_source("config") is ParameterSource.DEFAULT:
        config = engine_config(model)
    state = state_folder(config)
    settings = ServeSettings(
        config=config.absolute(),
        state=state,
        environment=_environment(options["recipe_env"]),
        startup_timeout=options["startup_timeout"],
        log_level=_level(options["log_level"], options["verbose"]),
        port_offset=port_offset(),
        overrides=overrides,
    )
    code = run_router(settings, lambda sentence: click.echo(sentence, err=True), lambda urls: noted_router(config, state, urls))
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a thread may still wait for a model runtime's answer


def _level(given: str | None, verbose: bool) -> str:
    """Raises ConfigError for an SR_LOG_LEVEL that is no level."""
    level = ("debug" if verbose else given or os.environ.get("SR_LOG_LEVEL") or "info").lower()
    if level not in _LEVELS:
        raise ConfigError(f"SR_LOG_LEVEL must be one of {', '.join(_LEVELS)}, found {level[:40]!r}", param="SR_LOG_LEVEL")
    return _LEVELS[level]


def _environment(allowed: Sequence[str]) -> dict[str, str]:
    """What the configuration may read: everything, or what was named."""
    if any("=" in name for name in allowed):
        raise ConfigError("--recipe-env takes the name of a variable, not NAME=value", param="recipe_env", fix="Set the variable and name it.")
    missing = [name for name in allowed if name not in os.environ]
    if missing:
        raise ConfigError(f"--recipe-env names {missing[0]}, which is not set", param="recipe_env")
    return {name: value for name, value in os.environ.items() if not allowed or name in allowed}
