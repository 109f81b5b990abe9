"""What the package `laya` is asked, and the tests ask again. No imports of Headway: `record_laya.py` runs without it."""

from __future__ import annotations

from typing import Any

LONG = " ".join(f"Sentence number {i} says that the parcel {i * 7} was late again." for i in range(40))

# state, question; at most 16 options, since more are asked in groups
CASES: list[tuple[Any, dict[str, Any]]] = [
    ("I was charged twice", {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "charges", "bug": None, "x": {"a": [1, "ä"]}}}),
    ("I was charged twice", {"type": "noul", "instructions": "Is it about money?"}),
    ("I was charged twice", {"type": "noul", "instructions": {"ask": "Wütend?"}, "criteria": {"true": "the customer is angry", "false": None}}),
    ("I was charged twice", {"type": "score", "instructions": "How urgent?", "criteria": ["no", "soon", {"level": 3}, "now"]}),
    ({"ticket": "数据库 is slow 🙂", "plan": None, "open": True}, {"type": "score", "instructions": "x", "criteria": [f"level {i}" for i in range(10)]}),
    (["user: hello", "agent: hi [MASK] there", {"user": "[MASK]"}], {"type": "choice", "instructions": "Pick [MASK] one", "criteria": {"a [MASK]": "b", "c": "", "d": "[MASK]"}}),
    ("", {"type": "choice", "instructions": "Pick", "criteria": {"only this": None, "or that": 0}}),
    ("short", {"type": "choice", "instructions": "Which of these topics is it about? " * 12, "criteria": {f"topic {i}": f"things about the topic {i} " * (3 * i) for i in range(5)}}),
    ("short", {"type": "choice", "instructions": "Which?", "criteria": {f"k{i}": f"what the key {i} means in words" for i in range(16)}}),
    ("short", {"type": "choice", "instructions": "Which of these two?", "criteria": {"long": "one two three four five six " * 20, "brief": None}}),
    ("the first\r\nthe second\ttab", {"type": "choice", "instructions": "Which?", "criteria": {f"k{i}": None for i in range(11)}}),
]  # fmt: skip
# Cut where the package cuts: at the end, of lists at the beginning.
CUT: list[tuple[Any, dict[str, Any]]] = [
    (LONG, {"type": "noul", "instructions": "Was a parcel late?"}),
    ([LONG, "and the last one came"], {"type": "choice", "instructions": "What came?", "criteria": {"last": None, "first": None}}),
]
# More options than a question has in one sequence; `(head - 16) / 40` tokens each are fewer than the least.
MANY: tuple[Any, dict[str, Any]] = (
    "the fortieth", {"type": "choice", "instructions": "Which?", "criteria": {f"number {i}": f"this is {i}" for i in range(40)}},
)  # fmt: skip
