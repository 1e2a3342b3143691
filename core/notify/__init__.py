"""The sender of notices: a separate program, started by its module name. Other packages use `core/notices`."""
