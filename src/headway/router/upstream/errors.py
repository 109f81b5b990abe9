"""What goes wrong between the router and a backend, as the client may hear it: named by alias, never by URL or key."""

from __future__ import annotations

from headway.errors import HeadwayError


class UpstreamError(HeadwayError):
    """A backend could not be reached, broke off, or sent something that is no answer."""

    reason = "upstream_failed"


class UpstreamTimeoutError(UpstreamError):
    """A backend was not fast enough: `param` is not set, the message says which time was over."""

    reason = "upstream_timeout"


class BackendBusyError(UpstreamError):
    """A backend has as many requests as it may have, and as many wait as may, or this one waited long enough."""

    reason = "upstream_overloaded"


class NoBackendError(UpstreamError):
    """There is no backend that could be asked: none is declared with a weight, or the circuit of every candidate is open."""

    reason = "no_upstream"
