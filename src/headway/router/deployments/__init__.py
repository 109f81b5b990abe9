"""Model runtimes that answer signals: processes, replicas, calls."""
