#!/bin/sh
# Debian's Chromium for `make test-web`, and a font to write with, installed if they are missing. Playwright drives
# that browser and downloads none. CHROMIUM=… names another one.
set -eu

if command -v "${CHROMIUM:-chromium}" >/dev/null; then exit; fi
if ! command -v apt-get >/dev/null; then
  echo "Chromium is missing, and there is no apt-get: install it, or say CHROMIUM=/path/to/chromium" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then as_root=""
elif sudo -n true 2>/dev/null; then as_root="sudo -n"
else
  echo "Chromium is missing. Run: sudo apt-get install chromium fonts-dejavu-core" >&2
  exit 1
fi
echo "installing Debian's Chromium" >&2
$as_root apt-get -qq update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
  chromium fonts-dejavu-core >/dev/null
