"""Chat templates: sandboxed Jinja from the model repository, rendered to a prompt as transformers does.

A template is code from outside. It runs in Jinja's immutable sandbox, sees only plain JSON data, and its output, its
repetitions and its powers are bounded. Whatever it raises is the fault of the request or of the template, never of the
server, and becomes a RequestError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.runtime
import jinja2.utils
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from headway.errors import RequestError

MAX_TEMPLATE_CHARS: Final = 1 << 20
MAX_RENDERED_CHARS: Final = 64 << 20
_MAX_DEPTH: Final = 100
_MAX_POWER: Final = 1_024
_MAX_LOOPS: Final = 1_000_000
_COMPILED_KEPT: Final = 32
_MAX_REASON_CHARS: Final = 500
# transformers puts this mark behind the message to continue and cuts the rendered text at it. The blank at its end
# tells whether the template trims messages.
_OPEN_END: Final = "CONTINUE_FINAL_MESSAGE_TAG "
# Names under which templates look for reasoning; a message that has one of them is given all.
_REASONING: Final = ("reasoning_content", "thinking", "reasoning")


def render_chat_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    special_tokens: Mapping[str, str],
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    tools: Sequence[Mapping[str, Any]] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> str:
    """Render `messages` to the prompt text; equal to `apply_chat_template(..., tokenize=False)` of transformers.

    `variables` are further names for the template and win over `special_tokens`. With `continue_final_message` the
    prompt ends inside the last message. Raises RequestError: `chat_template_error` for whatever the template raises,
    `invalid_request` for arguments that contradict each other or are not JSON.
    """
    if continue_final_message and add_generation_prompt:
        raise RequestError("continue_final_message and add_generation_prompt cannot both be true", param="continue_final_message",
                           fix="Set add_generation_prompt to false to continue the last message.")  # fmt: skip
    if not messages:
        raise RequestError("messages must hold at least one message, got an empty list", param="messages")
    chat = [_message(message, f"messages[{i}]") for i, message in enumerate(messages)]
    final = _mark_open_end(chat[-1], template) if continue_final_message else ""
    names = {
        **special_tokens,
        **_plain(dict(variables or {}), "chat_template_kwargs", 0),
        "messages": chat,
        "tools": None if tools is None else _plain(list(tools), "tools", 0),
        "documents": None if documents is None else _plain(list(documents), "documents", 0),
        "add_generation_prompt": add_generation_prompt,
        "range": _BoundedRange(),
    }
    rendered = _render(compile_chat_template(template), names)
    return _cut_open_end(rendered, final) if continue_final_message else rendered


def render_template(template: str, variables: Mapping[str, Any]) -> str:
    """Render a template that is no chat's, with these names and nothing else. Raises RequestError (`chat_template_error`)."""
    return _render(compile_chat_template(template), {**_plain(dict(variables), "variables", 0), "range": _BoundedRange()})


@lru_cache(maxsize=_COMPILED_KEPT)
def compile_chat_template(template: str) -> jinja2.Template:
    """Compile once; the most recent ones are kept. Raises RequestError (`chat_template_error`)."""
    if len(template) > MAX_TEMPLATE_CHARS:
        raise _refused(f"The chat template has {len(template)} characters, the limit is {MAX_TEMPLATE_CHARS}")
    try:
        return _environment().from_string(template)
    except (jinja2.TemplateError, RecursionError, SyntaxError, OverflowError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        at = f" (line {line})" if line else ""
        raise _refused(f"The chat template cannot be compiled{at}: {error}") from None


def _render(template: jinja2.Template, names: Mapping[str, Any]) -> str:
    parts: list[str] = []
    room = MAX_RENDERED_CHARS
    try:
        for part in template.generate(names):
            room -= len(part)
            if room < 0:
                raise _refused(f"The chat template wrote more than {MAX_RENDERED_CHARS} characters")
            parts.append(part)
    except RequestError:
        raise
    except SecurityError as error:
        raise _refused(f"The chat template tried something that is not allowed: {error}") from None
    except Exception as error:  # foreign code: a TypeError in it is as likely as a TemplateError
        text = str(error)[:_MAX_REASON_CHARS] or type(error).__name__
        raise _refused(f"The chat template refused these messages: {text}") from None
    return "".join(parts)


def _refused(message: str, param: str = "messages") -> RequestError:
    return RequestError(message, reason="chat_template_error", param=param)


def _message(message: object, where: str) -> dict[str, Any]:
    """A copy as plain data, without the keys whose value is null: templates treat those as absent."""
    if not isinstance(message, Mapping):
        raise RequestError(f"{where} must be an object with role and content, got {type(message).__name__}", param=where)
    plain = _plain({key: value for key, value in message.items() if value is not None}, where, 0)
    reasoning = next((plain[name] for name in _REASONING if plain.get(name) is not None), None)
    return plain if reasoning is None else {"thinking": reasoning, **plain, "reasoning_content": reasoning}


def _plain(value: Any, where: str, depth: int) -> Any:
    """Rebuild `value` from exact JSON types, so that a template meets no object with methods of its own."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if depth > _MAX_DEPTH:
        raise RequestError(f"{where} is nested deeper than {_MAX_DEPTH} levels", param=where)
    if isinstance(value, Mapping):
        return {_plain(key, where, depth + 1): _plain(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, where, depth + 1) for item in value]
    for kind in (str, int, float):
        if isinstance(value, kind):  # an enum or another subclass
            return kind.__str__(value) if kind is str else kind(value)
    raise RequestError(f"{where} must hold only JSON values, found {type(value).__name__}", param=where)


def _mark_open_end(message: dict[str, Any], template: str) -> str:
    """Put the mark behind the text of the last message (in place) and return that text."""
    content = message.get("content")
    if content is None:
        raise _refused("continue_final_message needs a last message with content", "continue_final_message")
    if "content" not in template:
        raise _refused("continue_final_message: the chat template does not read the content of messages", "continue_final_message")
    if isinstance(content, str):
        message["content"] = content + _OPEN_END
        return content
    if isinstance(content, list):
        for part in reversed(content):
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                text: str = part["text"]
                part["text"] = text + _OPEN_END
                return text
    raise _refused("continue_final_message: the last message has no text to continue", "continue_final_message")


def _cut_open_end(rendered: str, final: str) -> str:
    mark = _OPEN_END.strip()
    at = rendered.rfind(mark)
    if at < 0 or final.strip() not in rendered:
        raise _refused("continue_final_message: the chat template drops or changes the last message, so it cannot be continued",
                       "continue_final_message")  # fmt: skip
    if rendered.startswith(_OPEN_END, at):
        return rendered[:at]
    return rendered[:at].rstrip()  # the template trims messages; then the open one is trimmed as well


class _Namespace(jinja2.utils.Namespace):
    """Jinja's `namespace` without underscore names, which could reach the insides of Python objects."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        # `self` is taken from args so that a template may say namespace(self=...), as with Jinja's own.
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _check_name(name)
        jinja2.utils.Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace cannot have the name {name!r:.40}")


class _Dict:
    """`dict` for templates: it builds dicts and offers nothing else of the type."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _BoundedRange:
    """`range` of one rendering: all ranges together have a bounded length, so nested loops end soon."""

    def __init__(self) -> None:
        self._left = _MAX_LOOPS

    def __call__(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self._left -= len(numbers)
        if self._left < 0:
            raise SecurityError(f"loops over more than {_MAX_LOOPS} numbers are not allowed")
        return numbers


class _Generation(jinja2.ext.Extension):
    """`{% generation %}...{% endgeneration %}` marks what to train on; here its body is plain output."""

    tags = {"generation"}  # noqa: RUF012 - declared so by Jinja

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node | list[jinja2.nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        return caller()


class _Sandbox(ImmutableSandboxedEnvironment):
    """The immutable sandbox, with repetition and powers bounded (`'a' * 10**12` is a crash without any output)."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and any(isinstance(side, int) and abs(side) > _MAX_POWER for side in (left, right)):
            raise SecurityError(f"powers beyond {_MAX_POWER} are not allowed")
        for times, items in ((left, right), (right, left)):
            if isinstance(times, int) and isinstance(items, str | list | tuple) and times * len(items) > MAX_RENDERED_CHARS:
                raise SecurityError(f"a repetition of more than {MAX_RENDERED_CHARS} characters is not allowed")
        return super().call_binop(context, operator, left, right)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals.update(raise_exception=_raise, strftime_now=_strftime_now, dict=_Dict(), namespace=_Namespace)
    return environment


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None,
            separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:  # fmt: skip
    """As in transformers: no HTML escapes, unlike Jinja's own filter."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)
