"""Import and export of files: event logs, messages in bulk, tables, schemas."""
