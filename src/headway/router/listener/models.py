"""GET /v1/models: the names that the caller may use. System One clients ask here too: what they may use is in `models`."""

from __future__ import annotations

from headway.router.listener.admission import model_allowed
from headway.router.listener.request import PublicRequest
from headway.router.listener.respond import send_object
from headway.router.native.endpoint import native_models


async def send_models(request: PublicRequest) -> None:
    key = request.caller.key
    names = request.generation.names.listed() if request.front.routes_chat else ()
    listed = [entry for entry in names if model_allowed(str(entry["id"]), request.rules, key)]
    native = native_models(request)
    await send_object(request.send, {"object": "list", "data": listed, **({"models": native} if native else {})})
