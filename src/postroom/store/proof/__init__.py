"""Whether a store is sound: replaying the journal, comparing, and mending."""
