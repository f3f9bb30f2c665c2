#!/usr/bin/env bash
# Runs every fuzz target of the module for a while each: scripts/fuzz.sh TIME, for example 30s.
# `go test -fuzz` takes one target at a time; what it finds is in the package's testdata/fuzz and belongs into the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=${1:?usage: scripts/fuzz.sh TIME}
count=0
while read -r directory; do
  [[ -n $directory ]] || continue
  targets=$(cd "$directory" && go test -list '^Fuzz' . | grep '^Fuzz' || true)
  for target in $targets; do
    echo "== $directory $target"
    (cd "$directory" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" .)
    count=$((count + 1))
  done
done < <(grep -rl --include='*_test.go' '^func Fuzz' cmd functions internal 2>/dev/null | xargs -r -n 1 dirname | sort -u)
echo "$count fuzz targets ran for $time each"
((count > 0))
