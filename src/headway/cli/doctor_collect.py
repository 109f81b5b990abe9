"""`headway doctor collect`"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("collect")
@click.option("--pid", type=int, help="A server that runs here.")
@click.option("--command", "launch", help="A launch command, or the path of a script, Compose file or manifest.")
@click.option("--url", help="A server to ask: health, models, metrics.")
@click.option("--api-key", envvar="VLLM_API_KEY", help="Its key; never written down.")
@click.option("--measure", is_flag=True, help="Measure memory bandwidth, matrix products and the reading of the model's file: some seconds, loads torch.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Where to write (default: standard output).")
def collect_command(pid: int | None, launch: str | None, url: str | None, api_key: str | None, measure: bool, output: Path | None) -> None:
    """Write down what is known here as YAML, for `headway doctor log FILE --context`: versions, variables, model, machine,
    metrics. Secrets are masked; nothing is sent anywhere."""
    from headway.doctor.collect.assemble import as_yaml
    from headway.doctor.gathered import gather

    text = as_yaml(gather(pid, launch, url, api_key, measure))
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
        click.echo(f"{output}: {len(text)} bytes")
