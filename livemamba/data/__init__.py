"""One file per corpus, read into the project's own words; builders; what training reads."""
