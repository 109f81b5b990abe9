"""Document of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from headway.router.config.document.global_settings import GlobalSettings
from headway.router.config.document.listeners import Listener
from headway.router.config.document.node import Node
from headway.router.config.document.providers import Providers
from headway.router.config.document.routing import Entrypoint, Recipe, Routing


class Document(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "evaluation": "the evaluation catalogue is not built; vllm-sr test and vllm-sr optimize work on files",
    }

    version: Literal["v0.3"]
    listeners: list[Listener] | None = None
    providers: Providers | None = None
    routing: Routing | None = None
    entrypoints: list[Entrypoint] | None = None
    recipes: list[Recipe] | None = None
    global_: GlobalSettings | None = Field(default=None, alias="global")
