"""The operator's commands: they look, and change nothing. They run from a checkout, with the app's settings."""
