"""Records of requests: how each was routed and what came of it."""
