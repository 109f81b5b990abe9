"""What `vllm-sr demo-heads` tells to write into a configuration is accepted there."""

from __future__ import annotations

from pathlib import Path

import yaml

from headway.cli.sr_demo_heads import fragment
from headway.router.config.document.document import Document
from headway.router.config.rules.bindings import bindings
from headway.training.texts import TASKS


def test_the_fragment_binds_every_head() -> None:
    document = Document.model_validate({"version": "v0.3", **yaml.safe_load(fragment(Path("/cache/demonstration-heads")))})
    assert [str(each) for each in bindings(document)] == []
    assert document.global_ is not None
    assert document.global_.model_catalog is not None
    bound = document.global_.model_catalog.bindings or {}
    assert {binding.head for binding in bound.values()} == {None, *TASKS}
