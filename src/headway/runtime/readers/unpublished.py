"""Packages that are recognised and whose layout nobody has published: refused, never guessed."""

from __future__ import annotations

from headway.errors import PackageError


def layout_not_published(what: str, param: str) -> PackageError:
    """`what` names the part that is missing from the public description."""
    return PackageError(f"layout not published: {what}", reason="layout_not_published", param=param,
                         fix="Serve another package of the family; docs/families.md lists what is known of each.")  # fmt: skip


def not_of_the_format(file: str, expected: str, found: object) -> PackageError:
    """A field of a package's configuration that its format does not allow."""
    return PackageError(f"{file} needs {expected}, found {found!r:.120}", reason="invalid_package", param=file,
                         fix="Download the package again, or check it against its source.")  # fmt: skip
