"""First answers as a practitioner sees them, beside runs whose time or cost was published."""
