"""The built-in providers: each puts one room behind the module's promise, and nothing more.

They stand here and not in their rooms because they bind configuration to parts: a room below takes
settings and knows neither the file nor the modules around it.
"""
