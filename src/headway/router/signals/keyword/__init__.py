"""Keywords: words and phrases of any script, found in a request's text."""
