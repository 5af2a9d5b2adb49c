"""What each capability keeps in the store, table by table."""
