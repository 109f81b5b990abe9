"""Tests of a routing policy: prompts with the decisions that they must lead to."""
