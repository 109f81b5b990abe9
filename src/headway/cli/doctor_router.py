"""`headway doctor router URL`"""

from __future__ import annotations

import sys

import click

from headway.cli.doctor_answer import Form, answer, form_options


@click.command("router")
@click.argument("url", default="http://127.0.0.1:8899")
@click.option("--management", help="Management address [default: port 8080 of the same host, moved as far as URL's is above 8899].")
@click.option("--metrics", help="Metrics address [default: port 9190 of the same host, moved likewise].")
@click.option("--prompt", default="What is the capital of France?", show_default=True, help="Text to preview; no model is asked.")
@click.option("--token", envvar="VSR_MGMT_TOKEN", help="Token of the management address.")
@click.option("--insecure", is_flag=True, help="Do not check certificates.")
@form_options
def router_command(
    url: str, management: str | None, metrics: str | None, prompt: str, token: str | None, insecure: bool, form: Form
) -> None:  # fmt: skip
    """Walk through the semantic router at URL (Headway's, or vllm-sr): startup, deployments, signals that are unknown, slow
    phases, a previewed request. Then say what is wrong."""
    from headway.doctor.collect.router import place_of
    from headway.doctor.router_walk import examine_router

    walked = examine_router(place_of(url, management, metrics), prompt, token, not insecure)
    said = [(step.ok, step.name.speak(form.language), step.detail.speak(form.language)) for step in walked.steps]
    if not form.as_json:
        for ok, name, detail in said:
            mark, colour = {True: ("ok ", "green"), False: ("NO ", "red"), None: ("?  ", "yellow")}[ok]
            click.echo(click.style(mark, fg=colour) + f" {name:<24} {detail}")
    sys.exit(answer(walked.examined, form, {"steps": [{"name": name, "ok": ok, "detail": detail} for ok, name, detail in said]}))
