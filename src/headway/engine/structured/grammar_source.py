"""From a constraint as a request wrote it to a grammar that xgrammar has compiled. Runs in the process that tries grammars, then in the engine."""

from __future__ import annotations

import json
from typing import Any, Final

from xgrammar import CompiledGrammar, GrammarCompiler, StructuralTag
from xgrammar.structural_tag import StructuralTagItem

MOST_BLANKS: Final = 4  # between two parts of JSON: room for a line and its indentation, none for a model that has lost its way


def compiled(compiler: GrammarCompiler, kind: str, text: str, blanks: bool) -> CompiledGrammar:
    """`kind` and `text` of a Constraint; `blanks`: whether JSON may have some. Raises what xgrammar raises."""
    if kind in ("json", "json_object"):
        return _json(compiler, text, blanks)
    if kind == "regex":
        return compiler.compile_regex(text)
    if kind == "choice":
        return compiler.compile_grammar("root ::= " + " | ".join(json.dumps(choice, ensure_ascii=False) for choice in json.loads(text)))
    if kind == "grammar":
        return compiler.compile_grammar(text) if "::=" in text else compiler.compile_lark(text)
    return compiler.compile_structural_tag(json.dumps(_with_bounded_blanks(_current_form(json.loads(text)))))


def _json(compiler: GrammarCompiler, schema: str, blanks: bool) -> CompiledGrammar:
    if blanks:
        return compiler.compile_json_schema(schema, any_whitespace=True, max_whitespace_cnt=MOST_BLANKS)
    return compiler.compile_json_schema(schema, any_whitespace=False, separators=(",", ":"))


def _current_form(tag: dict[str, Any]) -> Any:
    """Of the two forms of structural tags, the older one has `structures` and `triggers`."""
    if "structures" not in tag:
        return tag
    try:
        items = [StructuralTagItem(begin=s["begin"], schema=json.dumps(s["schema"]), end=s["end"]) for s in tag["structures"]]
        return json.loads(StructuralTag.from_legacy_structural_tag(items, tag["triggers"]).model_dump_json())
    except (KeyError, TypeError, ValueError):
        raise ValueError("structures must be a list of objects with begin, schema and end, and triggers a list of texts") from None


def _with_bounded_blanks(part: Any) -> Any:
    if isinstance(part, list):
        return [_with_bounded_blanks(item) for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "json_schema" and "json_schema" in part:
        return {**part, "max_whitespace_cnt": part.get("max_whitespace_cnt") or MOST_BLANKS}
    return {name: _with_bounded_blanks(value) for name, value in part.items()}
