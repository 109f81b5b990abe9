"""Chats with images: their prompts."""
