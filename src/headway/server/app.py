"""create_app: the HTTP application around an engine."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from headway import __version__
from headway.http.key_guard import KeyGuard
from headway.server.engine_port import EnginePort, MetricsPort
from headway.server.error_handlers import error_response, install_error_handlers
from headway.server.middleware import Accounting, RequestIdHeaders, UnderPrefix
from headway.server.openapi import openapi
from headway.server.plugged_middleware import plugged_middleware
from headway.server.routes import OPEN_PATHS, ROUTES
from headway.server.settings import ServerSettings
from headway.server.state import ServerState


def create_app(engine: EnginePort, settings: ServerSettings, metrics: MetricsPort) -> FastAPI:
    """The application; `app.state.headway` is its ServerState. Raises ConfigError for settings that cannot be used."""
    state = ServerState(engine, settings, metrics)
    app = FastAPI(
        title="Headway",
        version=__version__,
        middleware=_middleware(state),
        openapi_url=None if settings.disable_fastapi_docs else "/openapi.json",
        docs_url=None if settings.disable_fastapi_docs else "/docs",
        redoc_url=None if settings.disable_fastapi_docs else "/redoc",
    )
    app.state.headway = state
    for route in (route for route in ROUTES if route.exists(settings)):
        for method in route.methods:
            name = f"{route.handler.__name__}_{method}".lower()
            app.add_api_route(
                route.path, route.handler, methods=[method], operation_id=f"{name}{route.path.replace('/', '_')}"
            )
    install_error_handlers(app)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app


def _middleware(state: ServerState) -> list[Middleware]:
    """Outermost first."""
    settings = state.settings
    chain = [Middleware(Accounting, state=state)]
    if settings.root_path:
        chain.insert(0, Middleware(UnderPrefix, prefix=settings.root_path.rstrip("/")))
    if settings.enable_request_id_headers:
        chain.append(Middleware(RequestIdHeaders))
    if settings.allowed_origins:
        chain.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.allowed_origins,
                allow_credentials=settings.allow_credentials,
                allow_methods=settings.allowed_methods,
                allow_headers=settings.allowed_headers,
            )
        )
    if settings.api_key:
        chain.append(Middleware(KeyGuard, keys=settings.api_key, open_paths=OPEN_PATHS, refuse=error_response))
    return [*(plugged_middleware(path) for path in settings.middleware), *chain]
