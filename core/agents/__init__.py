"""Child agents: how each is started and how its stream is read."""
