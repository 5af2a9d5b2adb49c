"""Looking after a store for years: retention, archives, backups."""
