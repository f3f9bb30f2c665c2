#!/usr/bin/env bash
# Writes what each function is made of, as CycloneDX in JSON, from the very programs that are deployed:
#
#   scripts/sbom.sh DIRECTORY [VERSION]
#
# DIRECTORY holds <LogicalId>/bootstrap for each function, as `make package` leaves them; beside each, <LogicalId>.cdx.json
# is written. VERSION is what the functions are called there (default: what git describes, else 0.0.0). A list is the
# same bytes for the same program and version: it has no serial number and no time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

directory=${1:?usage: scripts/sbom.sh DIRECTORY [VERSION]}
version=${2:-$(git describe --tags --always --dirty 2>/dev/null || echo 0.0.0)}
tool=build/tools/bin/cyclonedx-gomod
[[ -x $tool ]] || { echo "sbom: cyclonedx-gomod is not there; run: scripts/tools.sh sbom" >&2; exit 1; }

programs=("$directory"/*/bootstrap)
[[ -f ${programs[0]} ]] || { echo "sbom: no $directory/<LogicalId>/bootstrap; run: make package" >&2; exit 1; }
for program in "${programs[@]}"; do
  list=${program%/bootstrap}.cdx.json
  # It warns that it cannot look up the licence of the program's own module, which is in LICENSE.
  said=$("$tool" bin -json -licenses -noserial -notimestamp -version "$version" -output "$list" "$program" 2>&1) ||
    { printf '%s\n' "$said" >&2; exit 1; }
  modules=$(grep -c '"type": "library"' "$list") || true
  # A program without its build information would give an empty list.
  ((modules > 1)) || { echo "sbom: $list names no modules: was $program built with go build?" >&2; exit 1; }
  printf '%s %d modules\n' "$list" "$modules"
done
