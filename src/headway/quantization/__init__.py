"""Weight formats: one file each. They read stored tensors and give plain ones; nothing above knows a packed layout."""
