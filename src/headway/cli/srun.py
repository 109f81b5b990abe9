"""`vllm-srun`: the commands of the model runtime. Each is imported when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from headway import __version__
from headway.cli.lazy_group import LazyGroup, run_program
from headway.host.worker_environment import prepare_worker

# name -> (module:attribute, help)
_COMMANDS = {
    "serve": ("headway.cli.srun_serve:serve_command", "Serve task and decision models over HTTP."),
    "models": ("headway.cli.srun_about:models_command", "List the models that are known by name."),
    "plugins": ("headway.cli.srun_about:plugins_command", "List the plug-ins that are installed, as JSON."),
    "devices": ("headway.cli.srun_about:devices_command", "List the devices of this machine, as JSON."),
    "fixture": ("headway.cli.srun_fixture:fixture_command", "Write a tiny package with random weights."),
    "golden": ("headway.cli.srun_golden:golden_group", "Record the answers of a model, or compare with the record."),
    "evaluate": ("headway.cli.srun_evaluate:evaluate_command", "Ask a decision model the packaged labelled questions."),
    "calibrate": ("headway.cli.srun_calibrate:calibrate_command", "Calibrate a model on labelled examples."),
}


@click.command("vllm-srun", cls=LazyGroup, table=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", message="%(version)s")
def vllm_srun() -> None:
    """Serve task and decision models: classification, spans, embeddings, reranking, questions about a state."""


def main() -> None:
    run(sys.argv[1:])


def run(words: Sequence[str]) -> None:
    """Exit codes beside the usual ones: 3 device fault, 4 answers that have drifted."""
    prepare_worker(os.environ)  # before a command imports torch or numpy
    run_program(vllm_srun, words, program="vllm-srun", says="vllm-srun")


if __name__ == "__main__":
    main()
