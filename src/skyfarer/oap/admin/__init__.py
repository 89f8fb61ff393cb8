"""What the operator of a node may ask of it while it runs, by commands on the same machine.

    door     a Unix socket in the data directory, for its owner alone; and how a command asks there
    parked   records that analysis set aside: listing, showing, retrying them
    tasks    what agents are to do: settings, profiles

Not on a port: those may be open to a network, and these are the users' own data. The room must
never decode a payload, and never write to the queue but through the receiver.
"""
