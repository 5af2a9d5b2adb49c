"""COBOL programs: communication descriptions, the session of a program, the precompiler and its C library."""
