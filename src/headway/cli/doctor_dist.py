"""`headway doctor dist`"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.doctor_answer import Form, answer, form_options

if TYPE_CHECKING:
    from headway.doctor.compared_nodes import ComparedNodes
    from headway.doctor.words import Language


@click.command("dist", context_settings={"ignore_unknown_options": True})
@click.option("--nodes", multiple=True, metavar="FILE,FILE...", help="Facts of the nodes, as --collect writes them: files with commas between.")
@click.option("--collect", "target", type=click.Path(path_type=Path, dir_okay=False), help="Write down the facts of this node.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@form_options
def dist_command(nodes: tuple[str, ...], target: Path | None, words: tuple[str, ...], form: Form) -> None:
    """Are the nodes of a launch alike: versions, files of the model, flags, addresses, shared memory?

    On each node: headway doctor dist --collect FILE -- MODEL FLAGS, with the words that `headway serve` gets there. Then, anywhere: headway doctor dist --nodes FILE,FILE [LOG...].
    Nothing is connected to and nothing is downloaded; `headway serve` makes the same comparison itself before several nodes start.
    """
    if (target is None) == (not nodes):
        raise click.UsageError("Give --collect FILE on a node, or --nodes FILE,FILE to compare.")
    if target is not None:
        _collect(target, words)
        return
    from headway.doctor.compared_nodes import as_members, compare_nodes

    files = [Path(name) for text in nodes for name in text.split(",") if name]
    compared = compare_nodes(files, [Path(word) for word in words])
    if not form.as_json:
        _show(compared, form.language)
    sys.exit(answer(compared.examined, form, {"nodes": [as_members(node) for node in compared.nodes], "differences": _differences(compared, form.language)}))


def _collect(target: Path, words: tuple[str, ...]) -> None:
    from headway.cli.serve_config import serve_config
    from headway.distributed.node_facts import write_facts
    from headway.doctor.collect.model import model_on_disk
    from headway.engine.distributed.node_meeting import node_facts

    def warn(sentence: str) -> None:
        click.echo(f"headway: {sentence}", err=True)

    config = serve_config(words, os.environ, warn).engine
    model = model_on_disk(config.model)
    facts = node_facts(config, model if model is not None else Path(config.model))
    target.write_bytes(write_facts(facts))
    click.echo(f"{target}: {facts.label}, {facts.address or 'no address'} ({facts.chosen_by}), {len(facts.model)} model files")


def _differences(compared: ComparedNodes, language: Language) -> list[dict[str, object]]:
    from headway.doctor.rules.distributed.node_words import fix_of, sentence_of

    return [
        {
            "reason": one.reason, "refuses": one.refuses, "subject": one.subject, "by_node": dict(one.by_node),
            "sentence": sentence_of(one).speak(language), "fix": fix_of(one).speak(language),
        }
        for one in compared.found
    ]  # fmt: skip


def _show(compared: ComparedNodes, language: Language) -> None:
    from rich.console import Console

    from headway.doctor.report.node_table import node_table

    console = Console()
    console.print(node_table(compared.nodes, language))
    console.print()
