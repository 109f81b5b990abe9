"""Errors about fields of chats, told with the names that the fields have in another API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from headway.errors import HeadwayError

_PATH: Final = re.compile(r"(?:^|(?<=; ))[A-Za-z_][\w.\[\]]*[\w\]]")


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """`names`: of a chat's field, or of a path that begins at one, -> of this API's. They may be added to while the body runs.

    Raises the errors of its body, with `param` renamed, and also the paths that the sentences of their message begin with.
    """
    try:
        yield
    except HeadwayError as error:
        if error.param is not None:
            error.param = _own(error.param, names)
        error.args = (_PATH.sub(lambda found: _own(found[0], names), error.message), *error.args[1:])
        raise


def _own(path: str, names: Mapping[str, str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        if path == name or path.startswith((name + ".", name + "[")):
            return names[name] + path[len(name) :]
    return path
