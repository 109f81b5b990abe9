"""Fixtures shared by the tests of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.tiny_models import TinyModel, tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TinyModel]:
    root: Path = tmp_path_factory.mktemp("tiny")
    return lambda name: tiny_model(name, root)
