"""Document of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from headway.router.config.document.global_settings import GlobalSettings
from headway.router.config.document.listeners import Listener
from headway.router.config.document.node import Node
from headway.router.config.document.providers import Providers
from headway.router.config.document.routing import Entrypoint, Recipe, Routing


class Document(Node):
    """A whole configuration. It knows the folder of its file, where the relative names in it begin."""

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
    _folder: Path | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, data: Any, folder: Path | None) -> Document:
        """`folder` None = the working directory. Raises ValidationError."""
        document = cls.model_validate(data)
        document._folder = folder
        return document

    @property
    def folder(self) -> Path | None:
        return self._folder

    def place(self, name: str) -> Path:
        """The file or folder that the configuration names so: absolute, in the user's home (~), or from the folder of the configuration."""
        return (self._folder or Path()) / Path(name).expanduser()
