"""ManagementState: what the management address shows and changes."""

from __future__ import annotations

from dataclasses import dataclass

from headway.router.config.history.active import ActiveConfig
from headway.router.generation.generations import Generations
from headway.router.generation.reload import Reloader
from headway.router.generation.services import Services
from headway.router.management.access import Access
from headway.router.process.settings import ServeSettings
from headway.router.process.startup import Startup


@dataclass(slots=True)
class ManagementState:
    """One object for the process. `access` is that of the configuration that serves. `previews` counts those that run."""

    settings: ServeSettings
    services: Services
    generations: Generations
    startup: Startup
    reloader: Reloader
    access: Access
    config: ActiveConfig
    previews: int = 0
