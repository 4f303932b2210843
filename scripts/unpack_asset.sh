#!/usr/bin/env bash
# unpack_asset.sh ARCHIVE DIR STAMP: unpacks once. Several build folders share DIR: a second one must not
# rewrite files that a running test has mapped.
set -euo pipefail
archive=$1 dir=$2 stamp=$3
mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9
if [ ! -e "$stamp" ] || [ "$archive" -nt "$stamp" ]; then
  tar -xf "$archive" -C "$dir" --no-same-owner
  touch "$stamp"
fi
