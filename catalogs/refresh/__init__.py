"""Asks the providers for today's offers, checks them and publishes a new catalog version."""
