"""Secrets are masked when evidence is collected, so that no later step can print them."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

MASK: Final = "[masked]"

_SECRET_WORD: Final = (
    r"(?:(?:api|access|secret|private|signing|encryption|auth|account|master|license|service|admin|shared)[_.-]?(?:access[_.-]?)?keys?(?:[_.-]?id)?"
    r"|apikeys?|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|session[_.-]?id|jwt)"
)
# `eos_token`, `num_tokens`, `max_num_batched_tokens`, `tokenizer`: words of language models
_MODEL_TOKEN: Final = re.compile(
    r"(?i)(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|special|stop|next|per|added|think|start|end|first|last|one|bad|new|sampled|draft"
    r"|unexpected|invalid|expected|each|a|the|this)[_ ]$"
)
# only the end of a name is looked for: `HF_TOKEN` is found at `TOKEN`
_NAME: Final = rf"(?:{_SECRET_WORD}(?![A-Za-z0-9])(?:[_.-](?:value|file|b64|base64))?)"
_END: Final = r"[^\s\"',;}\])&]"
_SHAPES: Final = (
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}",
    r"hf_[A-Za-z0-9]{12,}",
    r"(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}",
    r"AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}",
    r"nvapi-[A-Za-z0-9_-]{12,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{16,}|pplx-[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|dop_v1_[a-f0-9]{20,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
    # the same shapes in base64, as Kubernetes secrets hold them
    r"(?:c2st|c2tf|aGZf|Z2hwX|Z2hvX|Z2l0aHViX3Bhd|QUtJQ|QVNJQ|bnZhcGkt|eG94[YWJlcHJz]|Z3NrX)[A-Za-z0-9+/]{8,}={0,2}",
)
_STEMS: Final = ("key", "token", "secret", "passw", "passphrase", "pwd", "credential", "session", "jwt")
_SHAPE_STARTS: Final = (
    "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "akia", "asia",
    "aroa", "aida", "aiza", "ya29.", "nvapi-", "gsk_", "xai-", "r8_", "pplx-", "npm_", "pypi-", "dop_v1_", "eyj", "c2st", "c2tf", "agzf", "z2hw",
    "z2hv", "z2l0", "qutj", "qvnj", "bnzh", "eg94", "z3nr",
)  # fmt: skip
# What a text in small letters must hold for a rule to be tried (a log has megabytes without any), and the rule. Each has
# two groups: what stays, and what goes.
_PATTERNS: Final = (
    (("private key",), r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)([\s\S]*?)(?=-----END|\Z)"),
    # Authorization: Bearer xyz, also in JSON and curl -H; cookies to the end of the header
    (("authorization",), r"(?i)((?:proxy-)?authorization[\"']?\s*[:=,]\s*\\?[\"']?(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?)([^\s\"',}\\]+)"),
    (("cookie",), r"(?i)(\b(?:set-)?cookie[\"']?\s*:\s*[\"']?)([^\"'\r\n]+)"),
    (("bearer",), r"(?i)(\bbearer\s+)([A-Za-z0-9._~+/=-]{6,})"),
    # scheme://user:password@host, scheme://token@host
    (("@",), r"(?i)(\b[a-z][a-z0-9+.-]{1,20}://)([^\s/@\"']{1,400})(?=@)"),
    (("hooks.slack",), r"(https://hooks\.slack\.com/services/)([A-Za-z0-9/]+)"),
    # --api-key one two; as words of a list: "--api-key", "one"
    (
        ("--",),
        r"(?i)(--(?:[a-z-]*api-keys?|[a-z-]*token|[a-z-]*password|[a-z-]*secret|[a-z-]*access-key)(?![a-z-])[\"']?(?:[ =]|, ?)+)"
        r"((?![\"']?-)[\"']?[^\s\"',\]]+[\"']?(?:(?: +|, ?)(?![\"']?-)[\"']?[^\s\"',\]|;&]+[\"']?)*)"
    ),
    (("-u",), r"((?:^|\s)(?:-u|--user)[ =][\"']?[^\s:\"']+:)([^\s\"']+)"),
    # a block of YAML: name: >-, and the lines under it
    (_STEMS, rf"(?i)({_NAME}[\"']?:\s*[>|][+-]?\d?[ \t]*\n)((?:[ \t]+\S[^\n]*(?:\n|$))+)"),
    # name: [one, two], then name=value, name: value, "name": "value", <name>value
    (_STEMS, rf"(?i)({_NAME}[\"']?\s*[=:]\s*)([\[(][^\])]*[\])])"),
    (_STEMS, rf"(?i)({_NAME}\\?[\"']?\s*[=:]\s*(?:!!\w+\s+)?[bru]?\\?[\"'])((?:\\.|[^\"'\\]){{1,4000}})"),
    (_STEMS, rf"(?i)({_NAME}\\?[\"']?\s*(?:=|:(?!//))\s*)({_END}{{3,}})"),
    # well-known shapes, wherever they stand
    (_SHAPE_STARTS, rf"()(?<![A-Za-z0-9])((?:{'|'.join(_SHAPES)}))"),
)


@cache
def _rule(pattern: str) -> re.Pattern[str]:
    """Compiled when the first hint at such a secret is met."""
    return re.compile(pattern)


# words that follow `token:` and the like in ordinary text and are no secrets; a name of a variable is none either
_PLAIN: Final = re.compile(r"(?i)^[\"'\[(]*(?:none|null|true|false|nil|\d{1,9}(?:\.\d+)?|\*+|\[masked|set|[>|][+-]?|unset|yes|no|auto|<[^>]*>|\$\{?\w*\}?|\{[\w.]*\}?|\.\.\.|…)?[\"'\])]*$")


# the members of a Kubernetes secret have names of any kind
_SECRET_DOCUMENT: Final = "kind: Secret"
_SECRET_MEMBERS: Final = re.compile(r"(?m)^([ \t]*(?:data|stringData):[ \t]*\n)((?:[ \t]+\S[^\n]*(?:\n|$))+)")


def mask(text: str) -> str:
    """`text` with the values of keys, tokens and passwords replaced."""
    if _SECRET_DOCUMENT in text:
        text = _SECRET_MEMBERS.sub(lambda found: found[1] + "  " + MASK + "\n", text)
    small = text.lower()
    for hints, pattern in _PATTERNS:
        if any(hint in small for hint in hints):
            text = _rule(pattern).sub(_without_secret, text)
    return text


def _without_secret(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if _PLAIN.match(value.strip()):
        return found[0]
    if name[:5].lower() == "token" and _MODEL_TOKEN.search(found.string, max(0, found.start() - _LONGEST_WORD), found.start()):
        return found[0]
    return name + MASK


_LONGEST_WORD: Final = 12
_SECRET_NAME: Final = re.compile(rf"(?i)^(?:.*[^a-z0-9])?(?:{_SECRET_WORD}|authorization|cookie)$")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def names_a_secret(name: str) -> bool:
    """Whether the value behind this name (of a variable, a member, a header) is a secret."""
    name = _CAMEL.sub("_", name)
    return bool(_SECRET_NAME.match(name)) and not _MODEL_TOKEN.search(name.lower().removesuffix("token"))
