"""Keywords at symbols, beside CJK and in other scripts: keyword, text, the words that must be found (None: nothing)."""

from __future__ import annotations

KEYWORDS = [
    ("C++", "Explain C++ move semantics", "C++"),
    (".NET", "Is .NET 8 faster?", ".NET"),
    ("发票", "我需要开发票", "发票"),
    ("python", "用python写函数", "python"),
    ("café", "a café nearby", "café"),
    ("board", "Open my dashboard", None),
    ("AI", "said it again", None),
    ("A)", "pick A) or B)", "A)"),
    ("C#", "Convert this C# code", "C#"),
    ("안녕", "안녕하세요", "안녕"),
    ("привет", "скажи привет всем", "привет"),
    ("cafe\u0301", "a café (NFC)", "café"),
    ("C", "I like C++", "C"),  # a symbol is no part of a word
]
