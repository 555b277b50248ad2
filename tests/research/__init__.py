"""Studies, fits and the build of the shipped snapshot: for developers, not installed."""
