"""Says which GPU the task has; the local world has none."""

print("No GPU: the local stand-in fits its small model on the CPU", flush=True)
