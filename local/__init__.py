"""The laptop stack: everything here runs HASTE and Azure Batch look-alikes locally and never ships."""
