"""The small process that supervises one child."""
