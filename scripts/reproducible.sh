#!/usr/bin/env bash
# Builds functions twice, in two copies of the source at different places, under another umask and at another time, and
# compares what came out, the program and its archive:
#
#   scripts/reproducible.sh [--shared-cache] FUNCTION...
#
# Each build compiles everything anew, the standard library too, which takes minutes. With --shared-cache both take
# compiled packages from Go's cache and only link anew: it finds paths and times that get into an archive, and not a
# compiler that is not deterministic.
# The digests are printed, so that another machine's can be compared: the same Go version gives the same program. The
# archive is the same where the same zip made it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

shared=no
if [[ ${1:-} == --shared-cache ]]; then
  shared=yes
  shift
fi
(($# > 0)) || { echo "usage: scripts/reproducible.sh [--shared-cache] FUNCTION..." >&2; exit 2; }

scratch=$(mktemp -d)
# Go makes its caches read-only below.
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT

# digest prints the SHA-256 of a file, in hexadecimal.
digest() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# build PLACE FUNCTION... copies what a function is made of to the place, and makes and zips them there.
build() {
  local place=$1 function
  shift
  mkdir -p "$place"
  cp -R go.mod go.sum Makefile template.yaml samconfig.toml functions internal scripts "$place/"
  [[ $shared == yes ]] || export GOCACHE=$place/cache
  for function in "$@"; do
    make -s --no-print-directory -C "$place" "build-$function" ARTIFACTS_DIR="$place/$function" >&2
    "$place/scripts/zip.sh" "$place/$function.zip" "$place/$function/bootstrap" >/dev/null
  done
}

(umask 022 && build "$scratch/one" "$@")
(umask 077 && build "$scratch/elsewhere/and/deeper/two" "$@")

status=0
for function in "$@"; do
  for file in "$function/bootstrap" "$function.zip"; do
    one=$(digest "$scratch/one/$file")
    two=$(digest "$scratch/elsewhere/and/deeper/two/$file")
    printf '%s  %s\n' "$one" "$file"
    [[ $one == "$two" ]] || { echo "reproducible: $file differs: the other build has $two" >&2; status=1; }
  done
done
exit "$status"
