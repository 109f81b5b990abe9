"""Fixtures shared by the tests of task models."""

from __future__ import annotations

import pytest

from tests.runtime.tasks.task_models import TaskModels


@pytest.fixture(scope="session")
def task_models(tmp_path_factory: pytest.TempPathFactory) -> TaskModels:
    return TaskModels(tmp_path_factory.mktemp("tasks"))
