"""Anthropic's Messages: blocks as chat messages, answers, their events, errors."""
