#!/bin/sh
# Renews the hash locks for every supported Python, naming no index.
set -eu
bin="$1"
"$bin/pip" install --quiet --disable-pip-version-check uv
lock() {
  "$bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-annotate --custom-compile-command "make lock" pyproject.toml "$@"
}
lock --extra demo --extra kafka --extra postgresql --extra zookeeper --extra etcd --group dev --output-file requirements.lock
lock --extra java --output-file requirements-java.lock
for client in agent otel; do
  "$bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --no-annotate --custom-compile-command "make lock" "tests/e2e/$client/requirements.in" \
    --output-file "tests/e2e/$client/requirements.lock"
done
for client in e2e/node_agent e2e/old_node_agent third_parties/axe; do
  (cd "tests/$client" && npm install --silent --package-lock-only --ignore-scripts)
done
