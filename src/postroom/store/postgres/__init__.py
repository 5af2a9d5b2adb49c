"""The store on PostgreSQL: its transactions (``store.py``), and the short ways by functions in the database."""
