"""profkit for coding agents: its verbs as tools of the Model Context Protocol."""
