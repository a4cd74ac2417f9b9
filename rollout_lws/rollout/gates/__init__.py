"""What a step has to pass before it ends, one gate a file, in this order: ``drain``, ``capacity``, ``crash_loops``,
``pins``, ``routes``, ``pause`` (``table``).
"""
