"""User inputs: settings, files, units."""
