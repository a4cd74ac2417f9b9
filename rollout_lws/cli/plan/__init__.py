"""plan: what a release will take and change, before it begins; also of manifests that are not applied yet."""
