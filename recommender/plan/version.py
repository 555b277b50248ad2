"""The version of the tool, in one place: answers and the files made of them name it."""

__version__ = "0.1.0"
