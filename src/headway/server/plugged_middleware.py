"""`--middleware`: ASGI middleware of the operator's own, named by import path."""

from __future__ import annotations

import importlib
import inspect

from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware

from headway.errors import ConfigError


def plugged_middleware(path: str) -> Middleware:
    """`path` is `module.Name` of a class that takes the application, or of an `async def name(request, call_next)`.

    Raises ConfigError, reason `middleware_invalid`, for what cannot be imported or is neither.
    """
    module, _, name = path.rpartition(".")
    if not module:
        raise _invalid(path, "is no import path such as package.module.Name")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs foreign code
        raise _invalid(path, f"cannot be imported: {type(error).__name__}: {error}") from error
    if inspect.isclass(found):
        return Middleware(found)  # type: ignore[arg-type]
    if inspect.iscoroutinefunction(found):
        return Middleware(BaseHTTPMiddleware, dispatch=found)
    raise _invalid(path, f"is neither a class nor an async function, but a {type(found).__name__}")


def _invalid(path: str, what: str) -> ConfigError:
    return ConfigError(f"--middleware {path[:200]!r} {what}", reason="middleware_invalid", param="middleware")
