"""`headway run-batch`: the requests of a file, answered by an engine in this process."""
