"""What the commands say of themselves under --help."""

from __future__ import annotations

ABOUT = """\
Application performance monitoring that loses nothing: agents report to a satellite beside them,
the satellite to the OAP, which analyses traces on Spark and answers the SkyWalking query protocol.
"""

EXAMPLES = """\
examples:
  skyfarer demo                      see all of it at work, with traffic, on this machine
  skyfarer oap start                 the analysis platform, gRPC on 11800, queries on 12800
  skyfarer satellite start           the sidecar: agents on 11801, upstream on 11800
  skyfarer ui start                  the web page for an OAP on this machine
  skyfarer query services            what an OAP knows, on this terminal
  skyfarer queue inspect DIR         what a queue holds, while its owner runs or not
  skyfarer oal check FILE            whether a file of metrics makes sense
"""

SATELLITE_ABOUT = """\
Takes what agents send, keeps it in a queue on disk and hands it to the OAP. An agent is answered
when its data is on disk; the OAP may be away for as long as the queue has room.
"""

SATELLITE_EXAMPLES = """\
examples:
  skyfarer satellite start
  SATELLITE_GRPC_CLIENT=oap:11800 skyfarer satellite start
  skyfarer satellite start --config /etc/skyfarer/satellite.yaml
  skyfarer satellite validate --config satellite_config.yaml
  skyfarer satellite graph > satellite.mmd
  skyfarer satellite top
  skyfarer satellite tap --pipe native --kind SEGMENT
  skyfarer satellite replay --pipe native
"""

VALIDATE_ABOUT = """\
Makes everything the configuration asks for, starts none of it, and says what it reads differently
from the original. Exit code 0 when it would work, 2 with one sentence when not.
"""

PRINT_CONFIG_ABOUT = """\
The configuration with the environment filled in and every default in its place, as YAML. Tokens and
passwords are masked.
"""

GRAPH_ABOUT = """\
A Mermaid flowchart: servers and fetchers, the queue, filters and sender of each pipe, and where
they send.
"""

TAP_ABOUT = """\
Shows records of a satellite that runs on this machine, found by the data directory of the
configuration. At most --rate a second; the pipe never waits for whoever watches, so the rest passes
unshown and is counted.
"""

TOP_ABOUT = """\
Rates, queue, losses and retries of every pipe, read from the metrics of a running satellite and
renewed every second. With --once it prints the table and ends.
"""

LETTERS_ABOUT = """\
Sends the records that a pipe's upstream refused for good once more, and removes those it takes. The
satellite may run meanwhile. Exit code 0 when none is left, 1 when some are refused again.
"""

OAP_ABOUT = """\
Receives from agents and satellites, analyses on Spark, stores, and answers GraphQL queries as
SkyWalking's OAP does, so its agents, CLI and web UI work against it.
"""

OAP_EXAMPLES = """\
examples:
  skyfarer oap start
  SW_CORE_REST_PORT=8080 skyfarer oap start
  skyfarer oap start --config /etc/skyfarer/application.yml
  skyfarer oap top
  skyfarer oap nodes
  skyfarer oap prepare
  skyfarer oap parked list
  skyfarer oap queue skip --at 4711
"""

OAP_TOP_ABOUT = """\
Records in and rows out, lag, batches, losses by reason, and how long the ingest queue lasts: read
from the metrics of a running OAP and renewed every second. With --once it prints them and ends.
"""

NODES_ABOUT = """\
The nodes that one of them knows of, in the order they all agree on: the first is the one that
deletes what has expired. Asked by HTTP, of the OAP that the configuration describes or of --url.
"""

PREPARE_ABOUT = """\
Writes an archive of Spark's Java classes (170 MB) into the installation, and prints where. Later
starts map it and take a quarter less of the processor. One that no longer fits, after an update of
Java or Spark, is passed over by Java, and this command makes the next.
"""

SETTINGS_ABOUT = """\
Settings that agents take over while they run, by service, in the agents' own words. `apply` reads
SkyWalking's form, `configurations:` with services below, and what it says is all there is from then
on: a service that is left out goes back to its own. The OAP must run on this machine.
"""

PROFILE_ABOUT = """\
Tasks of the profiler in the agents: stacks of the slow requests to one endpoint, for a few minutes.
Each service does one at a time. The OAP must run on this machine.
"""

AGENTS_EXAMPLES = """\
examples:
  skyfarer oap settings list
  skyfarer oap settings apply agents.yaml
  skyfarer oap profile create --service shop --endpoint GET:/orders --minutes 5 --threshold 100
  skyfarer oap profile list
"""

PARKED_ABOUT = """\
Records that the analysis of a running OAP could not use: kept whole, with the reason. To retry one
is to have its bytes analysed anew, as a new record; the old one stays, marked. The OAP must run on
this machine, and is found by its data directory. `retry` ends with code 0 when all were sent and
none was parked again, 1 when not.
"""

PARKED_EXAMPLES = """\
examples:
  skyfarer oap parked list --reason undecodable
  skyfarer oap parked list --json --limit 1000
  skyfarer oap parked show 4711
  skyfarer oap parked show 4711 --raw > record.bin
  skyfarer oap parked retry 4711 4712
  skyfarer oap parked retry --reason unknown_instance
"""

INGEST_QUEUE_ABOUT = """\
The queue between the receiver and the analysis of an OAP, found by its data directory; the OAP may
run or not. To skip a record is the last resort for one that stops the analysis: the log says
"analysis failed at record N" again and again. The record is not looked at any more, but parked with
its bytes as `skipped` when the analysis next begins; everything behind it is analysed. `skyfarer
queue` looks into the same directory.
"""

INGEST_QUEUE_EXAMPLES = """\
examples:
  skyfarer oap queue skip --at 4711
  skyfarer oap queue skip --at 4711 --reason 'stops the analysis since the upgrade'
  skyfarer oap queue skip --at 4711 --data-dir /var/lib/skyfarer
"""

TTL_ABOUT = """\
Data that has expired, by recordDataTTL and metricsDataTTL: which tables of days the next run would
drop, or that run at once. A run drops at most half of a model's days, and a day counts as come when
there is data of it, unless it is forced to; it never drops yesterday's or today's, whatever it is
told. The OAP must run on this machine. `--now` ends with code 0 when nothing failed and it was for
this node to delete, 1 when not.
"""

TTL_EXAMPLES = """\
examples:
  skyfarer oap ttl --dry-run
  skyfarer oap ttl --dry-run --force --json
  skyfarer oap ttl --now
"""

UI_ABOUT = "Serves the web page: services, instances and endpoints with their metrics, from an OAP."

UI_EXAMPLES = """\
examples:
  skyfarer ui start
  skyfarer ui start --oap http://oap:12800 --port 8080
"""

DEMO_ABOUT = """\
Starts an OAP, a satellite and the web page on this machine, sends them the traffic of a small shop
and prints the page's address. With --seconds it stops by itself, prints both ledgers and what the
query API answers beside what was sent, and fails if a single call is missing or counted twice.
"""

DEMO_EXAMPLES = """\
examples:
  skyfarer demo
  skyfarer demo --seconds 60 --rate 50
"""

QUEUE_ABOUT = """\
Looks into the queue of a satellite or an OAP. All of it reads only: no lock is taken, nothing is
written to the directory and no consumer's place moves, so the owner may go on working.
"""

QUEUE_EXAMPLES = """\
examples:
  skyfarer queue inspect ~/.local/state/skyfarer/satellite/native/queue
  skyfarer queue inspect DIR --json
  skyfarer queue verify DIR
  skyfarer queue dump DIR --from 1000 --to 1010
  skyfarer queue dump DIR --out records.dump
  skyfarer queue replay DIR --to oap:11800
"""

INSPECT_ABOUT = """\
What the directory is, who owns it, how full it is, how many seconds it lasts at the current rate
(looking twice, a second apart, while its owner runs), and for each consumer its place and its
ledger: accepted = delivered + queued + dropped, by reason.
"""

VERIFY_ABOUT = """\
Checks every record held against its checksum and lists the numbers that are damaged or lost. Exit
code 0 when all is whole, 1 when not.
"""

DUMP_ABOUT = """\
Records as lines of number, kind, length and payload in hex; or, with --out, as they are, in a file.
What cannot be read is said on standard error, and the exit code is then 1.
"""

REPLAY_ABOUT = """\
Sends the records held to an OAP or a satellite, which takes them for new ones. No consumer's place
moves. Exit code 0 when every record was taken, 1 when not.
"""

QUERY_ABOUT = """\
Asks an OAP over the public query protocol, ours or SkyWalking's, here or elsewhere. Times are in
the server's zone. Exit code 0 also when nothing was found, 1 when the OAP is not reached, refuses,
or does not know a name, 2 when the command line is wrong.
"""

QUERY_EXAMPLES = """\
examples:
  skyfarer query services --last 1h
  skyfarer query endpoints checkout --keyword /cart
  skyfarer query topology --layer GENERAL
  skyfarer query topology --service checkout --to payment
  skyfarer query traces --service checkout --state error --order duration
  skyfarer query trace 5b8aa5a2d2c872e8321cf37308d69df2
  skyfarer query logs --service checkout --tag level=ERROR --last 6h
  skyfarer query metrics service_percentile --service checkout
  skyfarer query services --url http://oap:12800 --json
"""

OAL_ABOUT = """\
OAL is the language in which metrics are defined. Nothing here starts an OAP or needs one.
"""

OAL_EXAMPLES = """\
examples:
  skyfarer oal check my-metrics.oal
  skyfarer oal check *.oal
  skyfarer oal explain service_percentile
  skyfarer oal explain queue_delay my-metrics.oal
  skyfarer oal explain queue_delay my-metrics.oal --spark
"""

OAL_CHECK_ABOUT = """\
Reads the files together, beside those that are shipped, and says where they are wrong: file, line,
column, one sentence each. Exit code 0 with the number of metrics they define when they make sense,
2 when not.
"""

OAL_EXPLAIN_ABOUT = """\
What a metric of the shipped files, or of yours, is made of: the columns that are stored for it,
what each adds up, which other metrics use it too, and the shape of the query. With --spark the plan
that Spark itself makes of it, for which Java is needed and some seconds. Exit code 2 when there is
no such metric or a file is wrong.
"""
