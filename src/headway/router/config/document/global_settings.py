"""Global settings of a configuration document."""

from __future__ import annotations

from headway.router.config.document.model_catalog import ModelCatalog
from headway.router.config.document.node import Node
from headway.router.config.document.router_settings import RouterSettings
from headway.router.config.document.services import Services
from headway.router.config.document.stores import Integrations, Stores


class GlobalSettings(Node):
    router: RouterSettings | None = None
    services: Services | None = None
    stores: Stores | None = None
    integrations: Integrations | None = None
    model_catalog: ModelCatalog | None = None
