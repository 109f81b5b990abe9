"""The same fault told by another machine: other names, numbers, prefixes, colours, and 30 % of lines from others."""
