"""Data that has expired goes, once, by one node, and never more than that.

    policy    which tables of days go: pure, out of two clocks and the list of tables
    turns     whose turn it is to delete, out of the list of nodes: pure
    sight     what this node has seen of the boundaries: ages for metrics, the alarm for health
    keeper    the timer of every node, which brings these together with storage and its lease

It must never drop a table but through `DayTables.drop`, under a lease that storage gave.
"""
