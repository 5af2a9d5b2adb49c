"""Forms: their language, layout, filling, and versions."""
