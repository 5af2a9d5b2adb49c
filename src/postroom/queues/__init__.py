"""Hierarchical queues after the Multics message control system: a description language, a tree, and the verbs."""
