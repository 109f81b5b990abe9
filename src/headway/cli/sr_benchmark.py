"""`vllm-sr benchmark`: a load on a router, measured by `headway bench serve`."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.serve_config import DEFAULT_MODEL
from headway.cli.sr_client import public_url
from headway.cli.sr_place import config_option
from headway.errors import NotBuiltError

_SERVICE = (
    "cancel", "candidate-plan", "catalog", "compare", "comparison-options", "dataset", "experiment", "export", "plan", "preview", "reconcile-usage",
    "recover", "recover-plan", "regrade", "replay", "replay-options", "report", "run", "runs", "serve", "setup", "show", "target",
)  # fmt: skip


@click.command("benchmark", context_settings={"ignore_unknown_options": True, "allow_extra_args": True}, epilog="All other options are those of `headway bench serve`.")
@config_option
@click.option("--base-url", help="Public address of the router; otherwise the first listener of --config.")
@click.option("--model", default="vllm-sr/auto", show_default=True, help="The name that requests ask for.")
@click.option("--backend", default="openai-chat", show_default=True, help="openai-chat or openai.")
@click.option("--tokenizer", default=DEFAULT_MODEL, show_default=True, help="Model reference whose tokenizer makes the prompts and counts tokens.")
@click.option("--num-prompts", default=100, show_default=True, type=click.IntRange(1), help="How many requests.")
@click.pass_context
def benchmark_command(context: click.Context, /, config: Path, base_url: str | None, model: str, backend: str, tokenizer: str, num_prompts: int) -> None:
    """Put a load on a running router; print throughput and latencies. OPENAI_API_KEY is sent if set.

    There is no service that keeps evaluations of quality (`benchmark run`, `compare`, ...): `vllm-sr test` checks decisions,
    `vllm-sr optimize` trains and judges selectors.
    """
    if context.args and context.args[0] in _SERVICE:
        raise NotBuiltError(
            f"vllm-sr benchmark {context.args[0]} is not built: there is no service that keeps evaluations of quality", param="benchmark",
            fix="vllm-sr benchmark alone measures speed, vllm-sr test checks decisions, vllm-sr optimize judges selectors.",
        )  # fmt: skip
    from headway.cli.bench import serve

    words = [
        "--base-url", public_url(base_url, config), "--model", model, "--served-model-name", model, "--backend", backend, "--tokenizer", tokenizer,
        "--num-prompts", str(num_prompts), *context.args,
    ]  # fmt: skip
    serve.main(words, prog_name="vllm-sr benchmark", standalone_mode=False)
