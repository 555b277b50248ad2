"""What people type or hand in: settings, files, units."""
