"""Ranks: several processes that compute one model, told what to do by rank 0, which is part of the engine."""
