"""The one command, `skyfarer`: words on the command line → a program of another room.

Contract: 0 is success, 2 a wrong command line or configuration, 1 any other failure; each failure
is one sentence on standard error. A program that serves prints one line when it is ready, and
SIGTERM or SIGINT stops it cleanly.

Must never: import at the top what only one command needs (the satellite's memory is measured), nor
hold anything worth testing without a command line.
"""
