"""The HTTP/1.1 server that agents, browsers and exporters post to: a request becomes records.

    endpoints   the table: path → what its body is, and what record it becomes
    server      the port and its connections, bounded in number
    exchange    one connection: requests one after another, every wait bounded
    body        a body as it arrives: inflated, and bounded before it is held
    inflating   gzip, deflate and zstd
    desk        a whole request → `Append`, and what its client is told
    proto_json  proto3 JSON → protobuf
    otlp_json   OpenTelemetry's own JSON → protobuf
    v2_json     SkyWalking 7's JSON → protobuf, and the answers back
    foreign     bodies of Telegraf, Zipkin and Firehose, looked at and kept as they came
    answers     what a client is told, in the form its protocol has for it

Knows no queue: whoever starts a server hands it the `Append` of each path that is kept.
"""
