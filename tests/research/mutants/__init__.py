"""Seeded faults of shipped functions, and the tests that find them (CONTRIBUTING.md)."""
