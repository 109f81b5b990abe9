"""The page on the router: what it says about variables and options."""

from __future__ import annotations

import re

import click
import pytest

from headway.cli.sr_ignored import IGNORED_VARIABLES
from headway.cli.sr_serve import serve_command
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/router.md").read_text()
ROWS = {name: told for names, told in re.findall(r"^\| (`[A-Z_`, ]+`) \| (.*) \|$", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", names)}
SOURCE = "\n".join(path.read_text() for part in ("cli", "router", "runtime", "artifacts") for path in (ROOT / "src/headway" / part).rglob("*.py"))
# Those that vLLM-SR 0.5 reads.
VARIABLES = ["VSR_MGMT_TOKEN", "VLLM_SR_STACK_NAME", "VLLM_SR_PORT_OFFSET", "VLLM_SR_IMAGE", "VLLM_SR_PLATFORM", "DASHBOARD_PLATFORM", "CONTAINER_RUNTIME", "VLLM_SR_GATEWAY", "VLLM_SR_RUNTIME_CONFIG_PATH", "VLLM_SR_SOURCE_CONFIG_PATH", "VLLM_SR_STATE_ROOT_DIR", "VLLM_SR_RUNTIME_STATUS_DIR", "VLLM_SR_RECIPE_ENV_ALLOWLIST", "VLLM_SR_ALGORITHM_OVERRIDE", "SR_BENCH_URL", "SR_BENCH_STORE", "VLLM_SR_BENCH_PORT", "SR_LOG_LEVEL", "NO_COLOR", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "VLLM_SRUN_COMMAND", "VLLM_SRUN_DIR", "VLLM_SRUN_CACHE_DIR", "VLLM_SRUN_READY_TIMEOUT", "VLLM_SRUN_CPU_THREADS", "VLLM_SRUN_CPU_PROCESSES", "VLLM_SRUN_RESULT_CACHE", "VLLM_SRUN_AUTOTUNE_CACHE"]


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_is_read_or_said_to_do_nothing(name: str) -> None:
    if ROWS[name].startswith("nothing"):
        assert name in IGNORED_VARIABLES or name.startswith(("SR_BENCH", "VLLM_SR_BENCH")) or name in ("NO_COLOR", "VLLM_SRUN_CPU_PROCESSES")
    else:
        assert f'"{name}"' in SOURCE


def test_every_option_of_serve_is_on_the_page() -> None:
    shown = [option for option in serve_command.params if isinstance(option, click.Option) and not option.hidden]
    assert [option.opts for option in shown if not any(f"`{name}" in PAGE for name in option.opts)] == []
