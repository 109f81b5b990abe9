"""What a reader finds in the text of an answer, in the order of the text.

Each event has `raw`, the characters that it stands for. Those of all events, one after the other, are the answer: whatever
a model writes, nothing of it is lost.
"""

from __future__ import annotations

from typing import NamedTuple


class Content(NamedTuple):
    """Text for whoever asked. Empty `text` is markup: characters that say nothing by themselves."""

    raw: str
    text: str


class Reasoning(NamedTuple):
    raw: str
    text: str


class CallBegins(NamedTuple):
    raw: str
    name: str


class CallArguments(NamedTuple):
    """The next piece of the JSON object that is the open call's arguments."""

    raw: str
    text: str


class CallEnds(NamedTuple):
    """`complete`: the arguments are one JSON object. `cut_off`: nothing is wrong with the call, but the answer ended in it."""

    raw: str
    complete: bool
    cut_off: bool = False


Event = Content | Reasoning | CallBegins | CallArguments | CallEnds
