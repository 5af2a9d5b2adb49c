"""Information flow graphs (Gryphon): spaces, the arcs between them, and the patterns on the arcs."""
