"""`vllm-sr config init`: a configuration to start from."""

from __future__ import annotations

from pathlib import Path

import click

from headway.errors import ConfigError

STARTER = """\
# A router with two models behind one address. Check it with `vllm-sr config validate`, run it with `vllm-sr serve`.
version: v0.3

listeners:
  - name: public
    address: 127.0.0.1
    port: 8899
    # api_keys: ["${ROUTER_API_KEY}"]

providers:
  defaults:
    model: small # answers when no decision matches
  models:
    - name: small
      backend_refs:
        - endpoint: ${SMALL_ENDPOINT:-127.0.0.1:8000} # any OpenAI-compatible server
    - name: large
      backend_refs:
        - endpoint: ${LARGE_ENDPOINT:-127.0.0.1:8001}

routing:
  modelCards:
    - name: small
      description: Fast, for everyday questions.
    - name: large
      description: Slower, for proofs and programs.
  signals:
    keywords:
      - name: hard_words
        operator: OR
        keywords: [prove, theorem, derivative, algorithm, refactor]
    context:
      - name: long_request
        min_tokens: 2K
  decisions:
    - name: hard_questions
      description: Proofs, programs and long requests.
      priority: 100
      rules:
        operator: OR
        conditions:
          - type: keyword
            name: hard_words
          - type: context
            name: long_request
      modelRefs:
        - model: large
"""


@click.command("init")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("config.yaml"), show_default=True, help="The file to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init_command(output: Path, force: bool) -> None:
    """Write a configuration with two models, one decision and comments."""
    if output.exists() and not force:
        raise ConfigError(f"{output} is there already", param="output", fix="Pass --force to replace it, or --output with another name.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(STARTER, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}", param="output") from None
    click.echo(f"Wrote {output}. Next: vllm-sr config validate --config {output}")
