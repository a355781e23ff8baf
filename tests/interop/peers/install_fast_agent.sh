#!/bin/sh
# fast-agent needs Python 3.12 or newer, and other versions of things than we do: it gets an environment of its own.
# Usage: install_fast_agent.sh FOLDER. Without such a Python nothing is installed, and the tests say so.
set -eu
here=$(dirname "$0")

for python in "${PYTHON312:-python3}" python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-5].*/bin/python; do
  if "$python" -c 'import sys; sys.exit(not (3, 12) <= sys.version_info < (3, 16))' 2>/dev/null; then
    "$python" -m venv "$1"
    "$1/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps --requirement "$here/fast-agent.txt"
    touch "$1/installed"
    exit
  fi
done
echo "Python 3.12 or newer is missing (PYTHON312=… names one): tests against fast-agent cannot run" >&2
