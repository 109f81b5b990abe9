"""Fixtures shared by the tests of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headway.kernels.choice import exact_kernels
from tests.models.tiny_models import TinyModel, tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TinyModel]:
    root: Path = tmp_path_factory.mktemp("tiny")
    return lambda name: tiny_model(name, root)


@pytest.fixture
def unrounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a checkpoint stores is compared with what others read: products of integers, which round their inputs, would hide small mistakes."""
    monkeypatch.setattr("headway.models.load.default_kernels", exact_kernels)
