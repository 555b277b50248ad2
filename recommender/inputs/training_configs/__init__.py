"""Reads the configuration files of training tools."""
