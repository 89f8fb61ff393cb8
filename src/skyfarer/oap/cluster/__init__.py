"""Coordinators: which OAP nodes there are, by whatever registry a cluster has.

    membership    the contract over any registry: one thread that asks in rounds
    standalone    no registry: this node alone
    zookeeper/    an ephemeral node of a session
    etcd/         a key under a lease

A registry is asked over and over for the same two things: that this node is registered, and who
else is. Its watches only bring the next round forward. What was missed, emptied or forgotten is
therefore found by the next round, without a case of its own.

Nodes are told of each other and nothing more: metrics of several nodes meet in the storage, and who
may delete is decided there. A coordinator that is away keeps nobody from receiving or storing.
"""
