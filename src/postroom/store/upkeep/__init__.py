"""Looking after a store for years: retention and backups."""
