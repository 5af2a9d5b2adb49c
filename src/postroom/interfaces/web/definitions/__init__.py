"""Pages of what is defined in a room: programs, flows, procedures, templates of forms."""
