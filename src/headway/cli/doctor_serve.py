"""`headway doctor serve URL`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli.doctor_answer import Form, answer, form_options


@click.command("serve")
@click.argument("url")
@click.option("--watch", "watched", is_flag=True, help="A live view of load, cache and processor, until --seconds are over or Ctrl-C; then the report.")
@click.option("--seconds", type=click.FloatRange(1, 3600), default=8.0, show_default=True, help="How long to look.")
@click.option("--requests", type=click.IntRange(0, 20), default=3, show_default=True, help="Tiny requests of 16 tokens to time; 0 sends none.")
@click.option("--timeout", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="Seconds that an answer may take before it counts as none.")
@click.option("--sample", type=click.Path(path_type=Path, dir_okay=False), help="Bodies of your requests, one JSON object a line: why does the prefix cache miss?")
@click.option("--said", default="", help="What seems wrong, in your words: a hint, never evidence.")
@click.option("--direct", help="The server's own address, when URL is that of a proxy before it.")
@click.option("--api-key", envvar="VLLM_API_KEY", help="The server's key.")
@click.option("--insecure", is_flag=True, help="Do not check the server's certificate.")
@form_options
def serve_command(
    url: str, watched: bool, seconds: float, requests: int, sample: Path | None, said: str, direct: str | None, api_key: str | None, insecure: bool, timeout: float,
    form: Form,
) -> None:  # fmt: skip
    """Look at the OpenAI-compatible server at URL (Headway, vLLM, ...): health, models, a few tiny requests timed at both
    ends, its metrics over some seconds. Says why it is slow, full or silent."""
    from headway.cli.doctor_watch import progress_of_samples
    from headway.doctor.live import Look, examine_url
    from headway.doctor.report.seen import seen_line

    interval = 1.0 if watched else 2.0
    samples = max(2, round(seconds / interval) + 1)
    look = Look(samples, interval, requests, api_key, not insecure, direct, sample, said, timeout)
    with progress_of_samples(samples, live=watched, quiet=form.as_json) as seen:
        examined = examine_url(url, look, seen)
    if not form.as_json and (line := seen_line(examined)) is not None:
        click.echo(f"  {line.speak(form.language)}")
    sys.exit(answer(examined, form))
