"""Amazon Web Services: list prices, spot prices, machines, quotas."""
