"""Pages of stations: a desk, its forms and dossiers, the way of a form, queries by example."""
