"""Exact replay of fallback policies on recorded availability, tick by tick."""
