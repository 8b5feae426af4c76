"""Plans of whole queries, kept as text next to the queries."""
