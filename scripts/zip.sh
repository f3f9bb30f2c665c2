#!/usr/bin/env bash
# Zips one program under its own name: scripts/zip.sh ARCHIVE FILE. The same bytes give the same archive, with the same
# zip or Python, whatever the time, the umask and the place: all three are in an archive otherwise.
set -euo pipefail

archive=$1 file=$2
rm -f "$archive"
touch -d 1980-01-01T00:00:00Z "$file" # the earliest time that a zip can hold
chmod 755 "$file"
if command -v zip >/dev/null; then
  TZ=UTC zip -q -9 -X -j "$archive" "$file"
elif command -v python3 >/dev/null; then
  TZ=UTC python3 - "$archive" "$file" <<'PYTHON'
import os, sys, zipfile
archive, path = sys.argv[1:]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    out.write(path, os.path.basename(path))
PYTHON
else
  echo "zip: neither zip nor python3 is there; install one with: apt-get install -y zip" >&2
  exit 1
fi
printf '%s %d bytes\n' "$archive" "$(wc -c <"$archive")"
