"""Fits of the shipped constants on published runs; nothing here runs in an answer."""
