"""Reads today's offers from the providers, checks them and publishes a new catalog version."""
