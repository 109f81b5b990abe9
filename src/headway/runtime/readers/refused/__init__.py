"""Decision packages that are recognised by their files and not served."""
