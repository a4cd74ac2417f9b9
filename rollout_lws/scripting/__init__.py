"""Runs Lua scripts of administrators, each in a child process that can do nothing but compute."""
