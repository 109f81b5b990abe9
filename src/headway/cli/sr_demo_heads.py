"""`vllm-sr demo-heads`: train the demonstration heads into the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from headway.artifacts.cache_folders import headway_cache
from headway.artifacts.progress import DownloadBars

if TYPE_CHECKING:
    from headway.training.demonstration import Result

_CONSUMERS = {"jailbreak": "prompt_guard", "domain": "domain_classifier", "fact_check": "fact_check_classifier",
              "user_feedback": "feedback_detector", "modality": "modality_detector"}  # fmt: skip


@click.command("demo-heads")
@click.option("--cache-dir", type=click.Path(file_okay=False, path_type=Path), default=None, help="Cache of Headway instead of $HEADWAY_CACHE.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def demo_heads_command(cache_dir: Path | None, as_json: bool) -> None:
    """Train small classifiers for seven signals on all-minilm-l6-v2, and say how to bind them.

    They are demonstrations: trained in seconds on English texts from templates, measured on templates that they have not seen. They show how
    signals are answered by a model and are not fit to guard anything.
    """
    from headway.training.demonstration import demonstration_heads
    from headway.training.texts import TASKS

    results: list[Result] = []
    with DownloadBars() as downloads, tqdm(total=len(TASKS), desc="heads", unit="head", leave=False, disable=None) as bar:

        def trained(result: Result) -> None:
            results.append(result)
            bar.update()

        place = demonstration_heads(headway_cache(cache_dir), progress=trained, downloading=downloads)
    if as_json:
        click.echo(json.dumps({"path": str(place), "heads": {r.task: {"accuracy": r.accuracy, "majority": r.majority, "texts": r.count} for r in results}}))
    else:
        for result in results:
            _print(result)
        click.echo(f"\nThe package is {place}; these are demonstrations, not guards. To use them:\n\n{fragment(place)}")


def _print(result: Result) -> None:
    click.echo(f"{result.task:<14} right in {result.accuracy:6.1%} of {result.count:3} texts from unseen templates (the commonest label: {result.majority:.1%})")


def fragment(place: Path) -> str:
    """The part of a configuration that binds every head."""
    lines = ["global:", "  model_catalog:", "    deployments:", "      demonstration:", "        provider: model_runtime", f"        artifact: {place}",
             "        input: {overflow: window, max_tokens: 8192}", "    bindings:", "      embedding: {deployment: demonstration, contract: embedding.v1}"]  # fmt: skip
    for head in ("domain", "jailbreak", "fact_check", "user_feedback", "complexity", "modality", "preference"):
        lines.append(f"      {_CONSUMERS.get(head, head)}: {{deployment: demonstration, contract: label_distribution.v1, head: {head}}}")
    return "\n".join(lines) + "\n"
