"""What every room stands on: errors, time, units, waiting, lifecycles, configuration, plugins.

A closed list. Nothing here imports another room, and nothing here knows what the programs do:
a name that only one room needs lives in that room. Importing any file of this room costs a
sidecar well under a megabyte; only `base.config` imports YAML.
"""
