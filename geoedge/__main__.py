"""`python -m geoedge`: the same as the command."""

from geoedge.cli import script

if __name__ == "__main__":
    script()
