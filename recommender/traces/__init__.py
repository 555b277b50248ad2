"""Recorded spot markets: our format, readers of public ones, fits, and laws saved for offers."""
