"""Texts of several scripts and lengths for comparisons."""

from __future__ import annotations

ENGLISH = "How do I reverse a linked list in Python without recursion?"
TEXTS = (
    ENGLISH,
    "a",
    "您好，请联系王小明，电话 555-0142。",
    "Please call Dana Wells at 555-0142, or write to dana@example.test. " * 5,
    "Write to José Núñez today: naïve café, 330 metres.",
    "שלום עולם 🙂 x",
)
