"""Checks of exported files by the tools they are for."""
