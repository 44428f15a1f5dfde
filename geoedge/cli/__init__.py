"""The command line: verbs in the words of the library, and nothing a notebook could not call.

A verb's module is imported with the command line, so it imports what does the work inside of the verb.
"""

# help lists the verbs in the order in which they are imported
# isort: off
from geoedge.cli import answering, planning, comparing, sweeping, pages, checking, sites, city  # noqa: F401
from geoedge.cli.program import app, main, script

__all__ = ["app", "main", "script"]
