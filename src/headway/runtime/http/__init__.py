"""The HTTP application of the model runtime: routes, bodies, timings, metrics."""
