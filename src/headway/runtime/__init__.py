"""Task and decision models: many in one process, tiny latencies, strict answers."""
