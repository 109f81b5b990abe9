"""What is wrong with a text that is no YAML: where, and what was expected there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ruamel.yaml.error import MarkedYAMLError

from headway.router.config.diagnostics import Diagnostic

_TAB: Final = "'\\t'"
HINTS: Final[Sequence[tuple[str, str]]] = (
    (_TAB, "YAML is indented with spaces; replace the tab"),
    ("mapping values are not allowed", "Expected one `key: value` in a line: put a value that holds `: ` into quotes, or check the indentation"),
    ("could not find expected ':'", "Expected `key: value`: a `: ` is missing, or the text before it is not closed"),
    ("expected <block end>", "Expected the end of this block: the line stands further left or right than the ones that it belongs to"),
    ("expected ',' or ']'", "Expected a comma or `]`: a list in brackets is not closed, or two items have no comma between them"),
    ("expected ',' or '}'", "Expected a comma or `}`: a mapping in braces is not closed, or two pairs have no comma between them"),
    ("found unexpected end of stream", "Expected the closing quote of a text that was opened before"),
    ("cannot start any token", "Expected a value: put a text that begins with this character into quotes"),
    ("found undefined alias", "Expected an anchor of this name (`&name`) above its use (`*name`)"),
    ("found unknown escape character", "In double quotes a backslash begins an escape: write it twice, or use single quotes"),
    ("expected alphabetic or numeric character", "Expected a name after `&` or `*`; put a text that begins with these into quotes"),
)
"""Part of what the parser says -> what helps; the first that fits."""


def syntax_diagnostic(error: MarkedYAMLError) -> Diagnostic:
    """`yaml_invalid` with line and column, both from 1; where the part began that could not be read, if that is another line."""
    mark, began = error.problem_mark or error.context_mark, error.context_mark
    what = " ".join(str(part) for part in (error.context, error.problem) if part)
    column = f", column {mark.column + 1}" if mark is not None else ""
    since = f" (it began in line {began.line + 1})" if mark is not None and began is not None and began.line != mark.line else ""
    fix = next((hint for part, hint in HINTS if part in what), None)
    return Diagnostic("yaml_invalid", f"not valid YAML{column}: {what}{since}", fix=fix, line=None if mark is None else mark.line + 1)
