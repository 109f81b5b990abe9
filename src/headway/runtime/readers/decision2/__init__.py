"""Decision 2.0 packages (`dev2-package/1`)."""
