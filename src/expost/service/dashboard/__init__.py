"""Pages for browsers: rendered here, readable without scripts, and with nothing from other hosts."""
