"""Starts every build from nothing; all else about the package stands in pyproject.toml.

Setuptools leaves its copy of the sources in build/lib and packs whatever lies there, so a module
that was deleted or renamed since would be installed again (pypa/setuptools, issue 1871).
"""

from shutil import rmtree

from setuptools import setup
from setuptools.command.build_py import build_py


class FromNothing(build_py):
    """Forgets what an earlier build has copied."""

    def run(self) -> None:
        """Copy the packages into an empty folder."""
        rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": FromNothing})
