"""What comes from files of other programs and goes into them: event logs, messages in bulk, tables, schemas."""
