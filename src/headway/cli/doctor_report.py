"""`headway doctor report`"""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("report")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--expected", default="", help="What should have happened.")
@click.option("--actual", default="", help="What happened instead.")
@click.option("--context", "context_file", type=click.Path(path_type=Path), help="A context that was collected elsewhere, instead of this machine's.")
@click.option("--pid", type=int, help="A server that runs here.")
@click.option("--command", "launch", help="The launch command, or the file that has it.")
@click.option("--url", help="A server to ask: health, models, metrics.")
@click.option("--api-key", envvar="VLLM_API_KEY", help="Its key; never written down.")
@click.option("--include-request-text", is_flag=True, help="Keep prompts and answers that stand in the logs.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default="headway-report.zip", show_default=True)
@click.option("--check", is_flag=True, help="Write nothing; list what would be masked, and the files.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def report_command(
    logs: tuple[Path, ...], expected: str, actual: str, context_file: Path | None, pid: int | None, launch: str | None, url: str | None,
    api_key: str | None, include_request_text: bool, output: Path, check: bool, as_json: bool,
) -> None:  # fmt: skip
    """Put LOGS and what is known here into one archive for a bug report. Secrets are masked, prompts are left out; nothing
    is sent anywhere."""
    from headway.doctor.bundle import make_bundle
    from headway.doctor.evidence.context import read_context
    from headway.doctor.gathered import gather

    known = read_context(context_file).tree if context_file is not None else gather(pid, launch, url, api_key)
    bundle = make_bundle(expected, actual, known, logs, context_file, request_text=include_request_text)
    masked = bundle.masked()
    if not check:
        bundle.write(output)
    if as_json:
        places = [{"file": place.file, "line": place.line, "before": place.before} for place in masked]
        click.echo(json.dumps({"archive": None if check else str(output), "files": list(bundle.members), "masked": places}, ensure_ascii=False, indent=2))
        return
    for place in masked:
        click.echo(f"  masked  {place.file}:{place.line}  {place.before}[...]")
    for name, text in bundle.members.items():
        click.echo(f"  file    {name}  {len(text.encode())} bytes")
    click.echo("nothing was written (--check)" if check else f"{output}: look through it, then attach it to the report; nothing was sent")
