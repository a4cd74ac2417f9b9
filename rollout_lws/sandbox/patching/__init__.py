"""Patches and field ownership (managedFields)."""
