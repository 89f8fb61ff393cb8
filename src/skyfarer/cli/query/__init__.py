"""`skyfarer query`: what an OAP knows, on a terminal.

Contract: a client of the public query protocol and of nothing else, so it speaks to any OAP,
SkyWalking's too, from any machine. It needs no more than the base installation. Whatever comes
from the other side is printed without control characters: a name may be anybody's.
"""
