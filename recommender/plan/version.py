"""The version of the tool, which answers and exported files contain."""

__version__ = "0.1.0"
