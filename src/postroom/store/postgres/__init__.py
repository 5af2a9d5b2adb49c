"""The store on PostgreSQL: its transactions (``store.py``), and the fast paths by functions in the database."""
