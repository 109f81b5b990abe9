"""The kernels of csrc/ as a backend: where they are not built, `library` says why and torch does everything."""
