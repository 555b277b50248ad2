"""Hostile inputs by the thousand."""
