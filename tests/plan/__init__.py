"""Plans as documents."""
