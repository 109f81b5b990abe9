"""Signals: facts about a request, observed by rules."""
