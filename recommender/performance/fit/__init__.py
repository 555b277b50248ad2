"""Fits the speed priors on published training runs; nothing here runs in an answer."""
