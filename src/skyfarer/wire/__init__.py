"""Everything that touches the network: the protocol as data, its servers and its clients.

`rpc` is the one table of what is spoken; `proto/` holds our .proto sources, `generated/` what the
build makes of them, and `messages` opens those to the rooms that decode. A message travels this
room as the bytes that came, but for the identity its stream told before it: nothing here decodes
one or knows what it means. docs/formats/wire.md describes the bytes.

Never imports protobuf outside `generated`, `messages` and what `http` does with JSON, since the
satellite imports the rest and must stay small. Never imports a queue: whoever starts a server hands
it the doors of what is kept, and the relay of what is asked.
"""
