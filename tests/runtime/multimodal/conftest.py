"""Fixtures shared by the tests of multimodal models."""

from __future__ import annotations

import pytest

from tests.runtime.multimodal.multimodal_models import FAMILY, MultimodalModels


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> MultimodalModels:
    return MultimodalModels(tmp_path_factory.mktemp("multimodal"), FAMILY)
