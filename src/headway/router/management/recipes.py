"""Recipes of the configuration over HTTP: one at a time, by name."""

from __future__ import annotations

import asyncio
from io import StringIO
from typing import Any

from headway.router.config.history.merge import round_trip
from headway.router.config.history.versions import etag_of
from headway.router.config.load import Source, examine
from headway.router.config.normal_form import masked
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.config import applied, apply, data_of
from headway.router.management.route import Route

_ROOT = "/api/v1/config/recipes"
_LONGEST_NAME = 200


async def list_recipes(call: Call) -> Answer:
    text = call.state.config.text
    return Answer({"recipes": masked(_recipes(await data_of(text)))}, headers={"ETag": etag_of(text)})


async def get_recipe(call: Call) -> Answer:
    text, name = call.state.config.text, call.parameters["name"]
    found = [recipe for recipe in _recipes(await data_of(text)) if recipe.get("name") == name]
    if not found:
        raise _unknown(name)
    return Answer(masked(found[0]), headers={"ETag": etag_of(text)})


async def validate_recipe(call: Call) -> Answer:
    """Within the configuration that serves, in the place of the recipe of the same name."""
    recipe = call.json()
    text = await asyncio.to_thread(_with_recipe, call.state.config.text, str(recipe.get("name") or ""), recipe)
    found = await asyncio.to_thread(examine, Source(text, "configuration", call.state.config.folder), call.state.settings.environment)
    return Answer({"valid": found.valid, "diagnostics": [each.as_json() for each in found.diagnostics]})


async def put_recipe(call: Call) -> Answer:
    name, recipe = call.parameters["name"], call.json()
    if recipe.setdefault("name", name) != name:
        raise ManagementError("INVALID_INPUT", f'the recipe is called "{str(recipe["name"])[:60]}", and the path says "{name[:60]}"')
    text = await asyncio.to_thread(_with_recipe, call.state.config.text, name, recipe)
    return applied(call, await apply(call, text, "replace"))


async def delete_recipe(call: Call) -> Answer:
    name, text = call.parameters["name"], call.state.config.text
    if all(recipe.get("name") != name for recipe in _recipes(await data_of(text))):
        raise _unknown(name)
    return applied(call, await apply(call, await asyncio.to_thread(_with_recipe, text, name, None), "replace"))


def _with_recipe(text: str, name: str, recipe: dict[str, Any] | None) -> str:
    """The text with that recipe in the place of the one of the same name, at the end if there is none, or without it."""
    if not name or len(name) > _LONGEST_NAME:
        raise ManagementError("INVALID_INPUT", "a recipe needs a name")
    yaml = round_trip(text)
    data = yaml.load(text)
    recipes = data.get("recipes") or []
    at = next((index for index, each in enumerate(recipes) if each.get("name") == name), None)
    if recipe is None:
        recipes = [each for each in recipes if each.get("name") != name]
    elif at is None:
        recipes.append(recipe)
    else:
        recipes[at] = recipe
    if recipes:
        data["recipes"] = recipes
    else:
        data.pop("recipes", None)
    out = StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _recipes(data: Any) -> list[dict[str, Any]]:
    return list(data.get("recipes") or ())


def _unknown(name: str) -> ManagementError:
    return ManagementError("NOT_FOUND", f'there is no recipe "{name[:60]}"', 404, fix="GET /api/v1/config/recipes lists them.")


ROUTES = (
    Route("GET", _ROOT, list_recipes, "config.read", "The recipes, with the configuration's ETag."),
    Route("POST", f"{_ROOT}/validate", validate_recipe, "config.read", "Check one recipe."),
    Route("GET", f"{_ROOT}/{{name}}", get_recipe, "config.read", "One recipe."),
    Route("PUT", f"{_ROOT}/{{name}}", put_recipe, "config.write", "Add or replace one recipe."),
    Route("DELETE", f"{_ROOT}/{{name}}", delete_recipe, "config.write", "Remove one recipe."),
)
