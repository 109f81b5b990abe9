"""The routes of operators."""

from __future__ import annotations

from typing import Any, Final

from headway.server.control.caches import reset_mm_cache, reset_prefix_cache
from headway.server.control.pause import abort_requests, is_paused, pause, resume
from headway.server.control.profile import start_profile, stop_profile
from headway.server.control.sleep import is_sleeping, sleep, wake_up
from headway.server.route import Route
from headway.server.settings import ServerSettings
from headway.server.swap.endpoint import swap_model, swap_state
from headway.wire.operations import ResetAnswer


def _dev(settings: ServerSettings) -> bool:
    return settings.server_dev_mode


CONTROL_ROUTES: Final = (
    Route("/start_profile", ("POST",), start_profile, media="text/plain", statuses=(400, 409)),
    Route("/stop_profile", ("POST",), stop_profile, media="text/plain", statuses=(400, 409)),
    Route(
        "/reset_prefix_cache", ("POST",), reset_prefix_cache, answer=ResetAnswer, exists=_dev,
        query=("reset_running_requests", "reset_external", "reset_connector"),
    ),
    Route("/reset_mm_cache", ("POST",), reset_mm_cache, answer=ResetAnswer, exists=_dev),
    Route("/sleep", ("POST",), sleep, media="text/plain", statuses=(400,), exists=_dev, query=("level", "mode")),
    Route("/wake_up", ("POST",), wake_up, media="text/plain", statuses=(400,), exists=_dev, query=("tags",)),
    Route("/is_sleeping", ("GET",), is_sleeping, answer=dict[str, Any], exists=_dev),
    Route("/pause", ("POST",), pause, answer=dict[str, Any], statuses=(400,), exists=_dev, query=("mode", "clear_cache", "wait_for_inflight_requests")),
    Route("/resume", ("POST",), resume, answer=dict[str, Any], exists=_dev),
    Route("/is_paused", ("GET",), is_paused, answer=dict[str, Any], exists=_dev),
    Route("/abort_requests", ("POST",), abort_requests, answer=dict[str, Any], statuses=(400,), exists=_dev),
    Route("/swap_model", ("POST",), swap_model, answer=dict[str, Any], statuses=(400, 409, 507), needs_engine=False, exists=_dev),
    Route("/swap_model", ("GET",), swap_state, answer=dict[str, Any], needs_engine=False, exists=_dev),
)  # fmt: skip
