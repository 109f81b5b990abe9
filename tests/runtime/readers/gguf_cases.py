"""Templates and questions that llama.cpp was asked, and the tests ask again. No imports of Headway.

The templates are ours; what they are given (`type`, `instructions`, `state`, `options` with key, description and label, `questions`,
`id`) is what llama.cpp gives to templates named `systemone`.
"""

from __future__ import annotations

from typing import Any

_VALUE = "{%- macro show(value) %}{{ value if value is string else value | tojson }}{% endmacro -%}\n"
_OPTIONS = "{% for o in options %}{{ o.label if o.label is defined else letters[loop.index0] }}. {{ o.key }}{% if o.description %}: {{ show(o.description) }}{% endif %}\n{% endfor %}"
TEMPLATES = {
    "openjev": _VALUE + "{% set letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' %}<|im_start|>State: {{ show(state) }}\nAsk {{ type }}: {{ show(instructions) }}\n" + _OPTIONS + "<|im_end|>\n",
    "lev": _VALUE + "<|im_start|>State: {{ show(state) }}\nAsk: {{ show(instructions) }}\n{% if type == 'noul' %}0 to 8{% for o in options %}{% if o.description %} {{ o.key }}={{ show(o.description) }}{% endif %}{% endfor %}\n{% else %}" + _OPTIONS + "{% endif %}<|im_end|>\n",
    "nimble": _VALUE + "<|im_start|>{% for q in questions %}{{ q.id | tojson }} {{ q.type }}: {{ show(q.instructions) }}{% for o in q.options %} {{ o.label }}={{ o.key }}{% if o.description is not none %}({{ show(o.description) }}){% endif %}{% endfor %}{% endfor %}\nState: {{ show(state) }}\nAsk {{ id }}<|im_end|>\n",
}  # fmt: skip
MARKER_TEMPLATE = (
    _VALUE + "[CLS]{{ type }} question: {{ show(instructions) }}[SEP]{% for o in options %}[MASK] {% if type == 'score' %}level {% endif %}{{ o.key }}{% if o.description %}: {{ show(o.description) }}{% endif %}{% endfor %}[SEP]{{ show(state) }}[SEP]"
)  # fmt: skip
TEMPERATURES = {
    "openjev": {"choice": 0.85, "noul": 1.5, "choice.3_5": 2.0},
    "lev": {"choice.small": 0.7, "choice.mid": 1.3, "noul": 2.5, "score": 0.5},
    "nimble": {},
}
CASES: list[tuple[Any, dict[str, Any]]] = [
    ("I was charged twice", {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "charges", "bug": None, "other": {"z": [1, "ä"], "a": True}}}),
    ({"ticket": {"text": "数据库 🙂", "tags": ["slow", {"since": 3.5}]}, "open": None, "a<b>": "c & 'd'"}, {"type": "choice", "instructions": ["Which", {"of": "these"}], "criteria": {"one": "1", "two": "2"}}),
    ("I was charged twice", {"type": "noul", "instructions": "Is it so?"}),
    (["a", {"b": 1}], {"type": "noul", "instructions": "Is it so?", "criteria": {"true": "it is", "false": {"not": "it"}}}),
    ("x\r\ny\tz", {"type": "score", "instructions": "How urgent?", "criteria": ["no", "soon", {"level": 2}, "now"]}),
    ("x", {"type": "score", "instructions": "i", "criteria": [f"level {i}" for i in range(10)]}),
    ("which one", {"type": "choice", "instructions": "Pick", "criteria": {f"option {i}": f"number {i}" for i in range(20)}}),
]  # fmt: skip
