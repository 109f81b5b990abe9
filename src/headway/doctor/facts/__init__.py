"""Typed facts that several rules need, joined from log and context, each with its quote."""
