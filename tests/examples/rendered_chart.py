"""The chart below examples/helm as Helm's own engine renders it: https://pypi.org/project/helm-python-sdk/ carries that as a library."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import helm_python
import yaml

FOLDER = Path(__file__).parents[2] / "examples" / "helm"
CHART = FOLDER / "headway"
COMPONENTS = ("engine", "runtime", "router")
NAMES = ("defaults", *sorted(file.stem for file in FOLDER.glob("values-*.yaml")))
NAMESPACE = "models"
Document = dict[str, Any]


def values_of(name: str) -> dict[str, Any]:
    """The values file NAME.yaml; {} for `defaults`."""
    found: dict[str, Any] = {} if name == "defaults" else yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


def render(values: dict[str, Any]) -> dict[str, str]:
    """From the name of a template to its text. Raises helm_python.HelmError."""
    with helm_python.Chart.load(CHART) as chart:
        rendered = chart.render(values, name="chat", namespace=NAMESPACE)
    return {name.rsplit("/", 1)[1]: text for name, text in rendered.items()}


@cache
def documents(name: str) -> tuple[Document, ...]:
    """All documents that the values file makes."""
    texts = [text for file, text in render(values_of(name)).items() if file.endswith(".yaml")]
    return tuple(found for text in texts for found in yaml.safe_load_all(text) if found)


def kind(name: str, wanted: str) -> dict[str, Document]:
    """The documents of one kind by their component."""
    found = [each for each in documents(name) if each["kind"] == wanted]
    return {each["metadata"]["labels"]["app.kubernetes.io/component"]: each for each in found}


def pod(deployment: Document) -> Document:
    found: Document = deployment["spec"]["template"]["spec"]
    return found


def container(deployment: Document) -> Document:
    [found] = pod(deployment)["containers"]
    assert isinstance(found, dict)
    return found
