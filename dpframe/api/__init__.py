"""What users touch."""
