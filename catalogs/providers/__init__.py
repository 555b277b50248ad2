"""The providers: one folder each, and their common contract."""
