#!/bin/sh
# Installs Debian's HAProxy for the tests of several replicas, if it is missing.
set -eu

if command -v haproxy >/dev/null; then exit; fi
if ! command -v apt-get >/dev/null; then
  echo "HAProxy is missing, and there is no apt-get: install it" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then as_root=""
elif sudo -n true 2>/dev/null; then as_root="sudo -n"
else
  echo "HAProxy is missing. Run: sudo apt-get install haproxy" >&2
  exit 1
fi
echo "installing Debian's HAProxy" >&2
$as_root apt-get -qq update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends haproxy >/dev/null
