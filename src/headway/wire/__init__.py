"""What travels over HTTP: request bodies, answers, errors and SSE frames. Knows nothing of engines or servers."""
