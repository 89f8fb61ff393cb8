"""Shipped stand-ins for what surrounds Skyfarer: agents' traces and whole demo traffic.

Contract: everything is made from the arguments given (time, randomness), so a seed repeats a run.
What is built are the agents' own messages, and what they must add up to is kept beside them.

Must never: be imported by a program that serves users; only tests, benchmarks and the demo may.
"""
