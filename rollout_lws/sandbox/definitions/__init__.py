"""CustomResourceDefinitions: those that the sandbox comes with, and how any of them is served."""
