"""Recorded spot markets: one format, readers of public ones, fits, and laws kept for offers."""
