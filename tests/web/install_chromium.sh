#!/bin/sh
# Installs Debian's Chromium without a window, and a font, for `make test-web` if they are missing. Playwright drives
# that browser and downloads none. It takes a quarter of the CPU time of the one with a window. CHROMIUM=… names
# another one.
set -eu

if command -v "${CHROMIUM:-chromium-headless-shell}" >/dev/null; then exit; fi
if ! command -v apt-get >/dev/null; then
  echo "Chromium is missing, and there is no apt-get: install it, or set CHROMIUM=/path/to/chromium" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then as_root=""
elif sudo -n true 2>/dev/null; then as_root="sudo -n"
else
  echo "Chromium is missing. Run: sudo apt-get install chromium-headless-shell fonts-dejavu-core" >&2
  exit 1
fi
echo "installing Debian's Chromium" >&2
$as_root apt-get -qq update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
  chromium-headless-shell fonts-dejavu-core >/dev/null
