"""Which family a package belongs to: each is asked, in name order; whoever forces one is not contradicted."""

from __future__ import annotations

import logging

from headway.errors import ArtifactError, PackageError
from headway.runtime.family import ModelFamily
from headway.runtime.package import Package
from headway.runtime.plugins import Plugin, Plugins

_log = logging.getLogger(__name__)


def family_of(package: Package, families: Plugins[ModelFamily], forced: str | None = None) -> Plugin[ModelFamily]:
    """The first family that recognizes the package.

    Raises PackageError (`no_family`), ConfigError (`unknown_plugin`) for a forced one that is not there, and what a family
    raises about damage that it sees. A plug-in that fails otherwise is named in the log and counts as one that said no.
    """
    if forced is not None:
        return families.named(forced, "family")
    trouble = families.broken()
    for plugin in families.usable():
        try:
            if plugin.thing.detect(package):
                return plugin
        except ArtifactError:
            raise
        except Exception as error:  # a plug-in is foreign code
            trouble.append(f"the plug-in {plugin.name!r} failed on it: {type(error).__name__}: {error}")
            _log.error("%s: %s", package.reference, trouble[-1])
    raise PackageError(
        f"no family recognizes the package {package.reference}; asked: {', '.join(families.by_name) or 'none'}"
        + (f"; {'; '.join(trouble)}" if trouble else ""),
        reason="no_family",
        param="model",
        fix="Choose a model of a kind that docs/families.md lists, or install the plug-in for it.",
    )
