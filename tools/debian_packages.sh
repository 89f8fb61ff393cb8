#!/bin/sh
# Installs the named Debian packages that are missing, when this user may; otherwise says which.
set -eu
missing=""
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "the tests need these Debian packages:$missing — install them, then run again" >&2
  exit 1
fi
echo "installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null
# shellcheck disable=SC2086
apt-get -qq install --yes --no-install-recommends $missing >/dev/null
