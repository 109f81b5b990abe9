"""Running a decision's plugins around the backend: order, counting, and what a defect in one of them costs."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from headway.errors import HeadwayError
from headway.router.metrics.registry import RouterMetrics
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class GuardFailedError(HeadwayError):
    """A guard broke down. Its request ends: nothing passes unchecked."""

    reason = "guard_failed"


class PluginRun:
    """The plugins of one request: `before` once, then `after` or `failed` once."""

    def __init__(self, plugins: Sequence[Plugin], context: RequestContext) -> None:
        self._plugins = plugins
        self._context = context
        self._ran: list[Plugin] = []

    async def before(self) -> Reply | None:
        """The reply of the first plugin that has one. Raises HeadwayError."""
        for plugin in self._plugins:
            self._ran.append(plugin)
            reply = await self._hook(plugin, plugin.before(self._context), None)
            if reply is not None:
                return reply
        return None

    async def after(self, reply: Reply) -> Reply:
        """Raises HeadwayError."""
        for plugin in reversed(self._ran):
            reply = await self._hook(plugin, plugin.after(self._context, reply), reply)
        return reply

    async def failed(self, error: Exception) -> None:
        for plugin in reversed(self._ran):
            try:
                await self._hook(plugin, plugin.failed(self._context, error), None)
            except HeadwayError:
                _LOG.debug("plugin %s could not note a failed request", plugin.type)

    async def _hook(self, plugin: Plugin, hook: Awaitable[T], otherwise: T) -> T:
        metrics, began = self._metrics, time.perf_counter()
        status = "success"
        try:
            return await hook
        except HeadwayError:
            status = "refused"
            raise
        except Exception as error:
            status = "error"
            metrics.count("llm_plugin_execution_errors", plugin.type)
            # The text of an exception may quote the request, so only its type is logged.
            _LOG.error("plugin %s failed: %s", plugin.type, type(error).__name__, exc_info=_LOG.isEnabledFor(logging.DEBUG))
            if plugin.fails_closed:
                raise GuardFailedError(f"the guard {plugin.type} failed", fix="The router's log has the details.") from error
            return otherwise
        finally:
            metrics.count("llm_plugin_execution", plugin.type, status)
            metrics.observe("llm_plugin_execution_latency_seconds", time.perf_counter() - began, plugin.type)

    @property
    def _metrics(self) -> RouterMetrics:
        return self._context.generation.services.metrics
