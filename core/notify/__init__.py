"""The sender of alerts: a separate program, started by its module name. Other packages use `core/alerts`."""
