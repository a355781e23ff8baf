#!/usr/bin/env bash
# Builds the wheel and the source distribution, and installs each into an empty environment: the wheel with every
# Python from 3.11 to 3.14 on this machine, the source distribution with the first of them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m build --outdir "$folder/dist" . > "$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }

try() {  # interpreter, package
    local environment
    environment=$(mktemp -d -p "$folder")
    "$1" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$2"
    "$environment/bin/skillwire" --version
    "$environment/bin/skillwire" check examples/skills > /dev/null
    (cd "$folder" && "$environment/bin/python" -W error -c '
import skillwire
for name in skillwire.__all__:
    getattr(skillwire, name)
')
    "$environment/bin/skillwire" list -- "$environment/bin/skillwire" serve examples/skills > /dev/null
    rm -rf "$environment"
}

find_python() {  # on the path, or among those of pyenv, whose shims may be off
    local each
    for each in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if "$each" --version > /dev/null 2>&1; then echo "$each"; return; fi
    done
}

passed=0
for version in 3.11 3.12 3.13 3.14; do
    interpreter=$(find_python "$version")
    if [ -z "$interpreter" ]; then
        echo "Python $version is not on this machine"
        continue
    fi
    if [ "$passed" = 0 ]; then
        try "$interpreter" "$folder"/dist/*.tar.gz
    fi
    try "$interpreter" "$folder"/dist/*.whl
    echo "Python $version: installed and run"
    passed=$((passed + 1))
done
if [ "$passed" = 0 ]; then
    try "$python" "$folder"/dist/*.tar.gz
    try "$python" "$folder"/dist/*.whl
    passed=1
fi
echo "$passed passed, 0 failed"
