"""The command line, also as kubectl plugin.

``main`` lists the commands; each has a module or package of its name, which is imported only when the command runs.
"""
