"""`vllm-sr optimize`: train selectors (knn, kmeans, svm, mlp) from rows, and see how good they are."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.lazy_group import LazyGroup
from headway.errors import ConfigError

if TYPE_CHECKING:
    from headway.router.config.document.document import Document
    from headway.router.selection.trained.dataset import Row
    from headway.router.selection.trained.optimizing import Outcome
    from headway.router.selection.trained.predictors import Matrix
    from headway.router.selection.trained.training import TrainingSettings

_COMMANDS = {
    "train": ("headway.cli.sr_optimize:train_command", "Train a selector from rows."),
    "evaluate": ("headway.cli.sr_optimize:evaluate_command", "Judge a trained selector on rows."),
}
_ALGORITHMS = ("knn", "kmeans", "svm", "mlp")
_Command = Callable[..., Any]


@click.group("optimize", cls=LazyGroup, table=_COMMANDS, not_built=("recipe-learning",))
def optimize_group() -> None:
    """Learn from rows which model is the best for which request.

    A row is one JSON object: {"text": "...", "model": "the best model"}, or {"text": "...", "scores": {"model": number, ...}}, optionally with
    "costs" like scores, and with "embedding" (then no embedding model is asked).
    """


def _with_embeddings(command: _Command) -> _Command:
    """Options that say who makes the vectors."""
    options = (
        click.option("--data", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Rows, JSON lines."),
        click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="The router's configuration: its embedding model makes the vectors."),
        click.option("--endpoint", help="Instead: a model runtime, http://host:port or unix:///path."),
        click.option("--embedding-model", help="The model's name at --endpoint, if it serves several."),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("train")
@_with_embeddings
@click.option("--algorithm", required=True, type=click.Choice(_ALGORITHMS))
@click.option("--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for models_path: the files go to OUTPUT/ALGORITHM.")
@click.option("--held-out", type=click.FloatRange(0.05, 0.5), default=0.2, show_default=True, help="Share of the rows that judge the result.")
@click.option("--k", type=click.IntRange(min=1), help="knn: neighbours that vote. [default: that of --config, else 7]")
@click.option("--clusters", type=click.IntRange(min=1), help="kmeans: clusters. [default: that of --config, else by the number of rows]")
@click.option("--kernel", type=click.Choice(("linear", "rbf")), help="svm: kernel. [default: that of --config, else rbf]")
@click.option("--seed", type=int, default=0, show_default=True)
def train_command(
    data: Path, config: Path | None, endpoint: str | None, embedding_model: str | None, as_json: bool, algorithm: str, output: Path, held_out: float,
    k: int | None, clusters: int | None, kernel: str | None, seed: int,
) -> None:  # fmt: skip
    """Train a selector and write it where the router finds it: global.router.model_selection.ml.models_path."""
    from headway.router.selection.trained.dataset import read_rows
    from headway.router.selection.trained.optimizing import train_selector

    rows = read_rows(data)
    document = _document(config, endpoint, embedding_model)
    vectors, representation = _vectors(rows, document, as_json)
    _say(f"training {algorithm} on {len(rows)} rows", as_json)
    settings = _settings(document, k, clusters, kernel, seed)
    _print(train_selector(rows, vectors, representation, algorithm, settings, output, held_out), as_json)


@click.command("evaluate")
@_with_embeddings
@click.option("--selector", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of one trained selector.")
def evaluate_command(
    data: Path, config: Path | None, endpoint: str | None, embedding_model: str | None, as_json: bool, selector: Path
) -> None:  # fmt: skip
    """Judge a trained selector on rows, beside always taking the same model and taking any."""
    from headway.router.selection.trained.dataset import read_rows
    from headway.router.selection.trained.optimizing import evaluate_selector

    rows = read_rows(data)
    vectors, representation = _vectors(rows, _document(config, endpoint, embedding_model), as_json)
    _print(evaluate_selector(selector, rows, vectors, representation), as_json)


def _document(config: Path | None, endpoint: str | None, embedding_model: str | None) -> Document | None:
    """What says who makes vectors. Raises ConfigError."""
    from headway.router.config.load import load_document
    from headway.router.selection.trained.row_vectors import endpoint_document

    if config is not None and endpoint is not None:
        raise ConfigError("--config and --endpoint are both given", param="endpoint", fix="Name one that makes the vectors.")
    if endpoint is not None:
        return endpoint_document(endpoint, embedding_model)
    return load_document(config, os.environ).document if config is not None else None


def _vectors(rows: Sequence[Row], document: Document | None, quiet: bool) -> tuple[Matrix, str | None]:
    from headway.router.selection.trained.dataset import given_vectors
    from headway.router.selection.trained.row_vectors import row_vectors

    found = given_vectors(rows)
    if found is not None:
        return found, None
    if document is None:
        raise ConfigError("the rows have no embeddings, and nothing is named that makes them", param="config", fix="Give --config or --endpoint.")
    _say(f"embedding {len(rows)} texts", quiet)
    return asyncio.run(row_vectors([row.text for row in rows], document, lambda done: _say(f"  {done} of {len(rows)}", quiet)))


def _settings(document: Document | None, k: int | None, clusters: int | None, kernel: str | None, seed: int) -> TrainingSettings:
    """Options, else the numbers of the configuration, else the defaults."""
    from headway.router.selection.trained.training import TrainingSettings

    router = document.global_.router if document is not None and document.global_ else None
    ml = router.model_selection.ml if router and router.model_selection else None
    knn, kmeans, svm = (ml.knn, ml.kmeans, ml.svm) if ml else (None, None, None)
    plain = TrainingSettings()
    return TrainingSettings(
        k=k or (knn and knn.k) or plain.k,
        clusters=clusters or (kmeans and kmeans.num_clusters) or plain.clusters,
        efficiency_weight=(kmeans and kmeans.efficiency_weight) or plain.efficiency_weight,
        kernel=kernel or (svm and svm.kernel) or plain.kernel,
        gamma=svm.gamma if svm else None,
        seed=seed,
    )


def _print(outcome: Outcome, as_json: bool) -> None:
    told, judgement = outcome.description, outcome.judgement
    if as_json:
        click.echo(json.dumps({"path": str(outcome.folder), "algorithm": told.algorithm, "models": list(told.models), **judgement.told()}))
        return
    click.echo(f"{told.algorithm} in {outcome.folder}, judged on {judgement.rows} rows:\n")
    click.echo(f"{'':<28}{'best model':>12}{'mean score':>12}")
    for name, right, score in (
        (told.algorithm, judgement.accuracy, judgement.score),
        (f"always {told.majority}", judgement.majority_accuracy, judgement.majority_score),
        ("at random", judgement.random_accuracy, judgement.random_score),
        ("without error", 1.0, judgement.best_score),
    ):
        click.echo(f"{name[:27]:<28}{right:>12.1%}{score:>12.3f}")
    chosen = ", ".join(f"{model} {count}" for model, count in judgement.chosen.items())
    click.echo(f"\nchosen: {chosen}")


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)
