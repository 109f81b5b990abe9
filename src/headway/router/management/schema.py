"""The JSON Schema of the configuration."""

from __future__ import annotations

from headway.router.config.json_schema import schema_etag, view
from headway.router.management.answer import Answer
from headway.router.management.call import Call
from headway.router.management.route import Route


async def schema(call: Call) -> Answer:
    """`?view=index` (default), `full`, or a section (`path`) or surface (`kind`, `name`), with everything that it refers to when `expanded`."""
    query = call.query
    chosen = query.get("view", "index")
    found = view(chosen, path=query.get("path", ""), kind=query.get("kind", ""), surface=query.get("name", ""), expanded=call.flag("expanded"))
    return Answer(found, headers={"ETag": schema_etag()})


ROUTES = (Route("GET", "/api/v1/config/schema", schema, "docs.read", "The JSON Schema of configurations, whole or in parts."),)
