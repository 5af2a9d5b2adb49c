"""Dependency-Spheres: transactions over messages and objects, with guaranteed compensation."""
