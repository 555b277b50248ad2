"""First answers as a practitioner sees them, next to runs whose time or cost was published."""
