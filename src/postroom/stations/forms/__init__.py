"""Forms: how they are written, drawn, filled in and kept by version."""
