"""A router imports what its configuration uses."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "transformers", "sklearn", "scipy", "bm25s", "usearch", "redis", "fasttext", "lingua", "fastapi")
SETUP = """
import asyncio, sys, tempfile
from pathlib import Path
import headway.cli.sr_serve, headway.router.process.run
from headway.router.config.document.document import Document
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.generation.assembly import Places, assemble
from headway.router.generation.services import Services

async def work(signals, rules, plugins):
    models = {"models": [{"name": "m", "backend_refs": [{"endpoint": "127.0.0.1:9"}]}]}
    routing = {"signals": signals, "decisions": [{"name": "d", "rules": rules, "modelRefs": [{"model": "m"}], "plugins": plugins}]}
    document = Document.model_validate({"version": "v0.3", "providers": models, "routing": routing})
    with tempfile.TemporaryDirectory() as folder:
        services = Services(Path(folder))
        assemble(document, RuntimeDeployments(document, services.runtimes, {}), services, Places(1, 1, {}))
        await services.close()

KEYWORD = {"name": "k", "operator": "OR", "keywords": ["word"]}
USED = {"type": "keyword", "name": "k"}
CACHE = {"type": "response_cache", "configuration": {"enabled": True, "mode": "exact"}}
"""


def imported(code: str) -> list[str]:
    found = f"print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{SETUP}\n{code}\n{found}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_without_need_nothing_large_is_imported() -> None:
    assert imported('asyncio.run(work({"keywords": [KEYWORD]}, USED, [CACHE]))') == []


def test_what_a_rule_needs_is_imported() -> None:
    assert set(imported('asyncio.run(work({"keywords": [{**KEYWORD, "method": "bm25"}]}, USED, []))')) >= {"bm25s", "scipy"}
