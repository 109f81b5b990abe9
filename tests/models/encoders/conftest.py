"""Fixtures shared by the tests of encoders."""

from __future__ import annotations

import pytest

from tests.models.encoders.tiny_encoders import MakeEncoder, tiny_encoder


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> MakeEncoder:
    root = tmp_path_factory.mktemp("encoders")
    return lambda name, head="Model": tiny_encoder(name, root, head)
