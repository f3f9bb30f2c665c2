#!/usr/bin/env bash
# Lists every module that is linked into the functions, into the command, or into tests, with the licences of the
# packages that are used of it, and fails on one that is copyleft, not known here, or not there at all:
#
#   scripts/licences.sh
#   scripts/licences.sh --identify FILE     says what licence one text is
#
# The texts are read where Go has the modules, so what is listed is what is built. A licence file counts for the
# packages below it: of each package that is used, every file named like a licence on the way up to its module's root.
# Tools that are run and never linked are in docs/adr/0002-dependencies.md.
set -euo pipefail

# What may be linked: permissive licences that ask for a notice at most.
readonly ALLOWED=' Apache-2.0 BSD-2-Clause BSD-3-Clause ISC MIT MIT-0 Unlicense '

# identify FILE prints the SPDX ids of the licences in a text, one a line; nothing for a text that it does not know.
# What is copyleft, or forbids a use, has a name too, so that the refusal says it.
identify() {
  local text
  text=$(tr -s '[:space:]*#/' ' ' <"$1" | tr '[:upper:]' '[:lower:]')
  has() { [[ $text == *"$1"* ]]; }
  if has 'gnu affero general public license'; then echo AGPL; fi
  if has 'gnu lesser general public license' || has 'gnu library general public license'; then echo LGPL; fi
  if has 'gnu general public license'; then echo GPL; fi
  if has 'mozilla public license'; then echo MPL; fi
  if has 'eclipse public license'; then echo EPL; fi
  if has 'common development and distribution license'; then echo CDDL; fi
  if has 'server side public license'; then echo SSPL; fi
  if has 'business source license'; then echo BUSL; fi
  if has 'elastic license'; then echo Elastic; fi
  if has 'commons clause'; then echo Commons-Clause; fi
  if has 'attribution-sharealike' || has 'attribution-noncommercial'; then echo CC-restricted; fi
  if has 'apache license' && has 'version 2.0'; then echo Apache-2.0; fi
  if has 'permission is hereby granted, free of charge'; then
    if has 'this permission notice shall be included'; then echo MIT; else echo MIT-0; fi
  fi
  if has 'permission to use, copy, modify, and/or distribute this software' ||
    has 'permission to use, copy, modify, and distribute this software'; then echo ISC; fi
  if has 'redistribution and use in source and binary forms'; then
    if has 'neither the name' || has 'names of its contributors may not be used'; then echo BSD-3-Clause; else echo BSD-2-Clause; fi
  fi
  if has 'free and unencumbered software released into the public domain'; then echo Unlicense; fi
}

# verdict LICENCE... prints why these may not be linked, and nothing where they may.
verdict() {
  local licence
  (($# > 0)) || { echo "no licence that is known here"; return; }
  for licence in "$@"; do
    [[ $ALLOWED == *" $licence "* ]] || echo "$licence is not among the allowed ones:$ALLOWED"
  done
}

if [[ ${1:-} == --identify ]]; then
  found=$(identify "${2:?--identify takes a file}")
  [[ -z $found ]] || printf '%s\n' "$found"
  # shellcheck disable=SC2086 # one word a licence, here and below
  why=$(verdict $found)
  [[ -z $why ]] || { echo "licences: $2: $why" >&2; exit 1; }
  exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# used SET ARGUMENT... writes the packages of other modules that a build of these takes in: module, version, its
# directory, the package's directory, and the set.
used() {
  local set=$1
  shift
  go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Version}}{{"\t"}}{{.Dir}}{{"\t"}}{{$.Dir}}{{end}}{{end}}' "$@" |
    awk -v set="$set" 'NF { print $0 "\t" set }' >"$scratch/$set"
}
GOOS=linux GOARCH=arm64 CGO_ENABLED=0 used functions -tags lambda.norpc ./functions/...
# The command is built for what its users have.
CGO_ENABLED=0 used command ./cmd/dakghar
GOOS=windows CGO_ENABLED=0 used command-windows ./cmd/dakghar
sed 's/command-windows$/command/' "$scratch/command-windows" >>"$scratch/command"
rm "$scratch/command-windows"
used tests -test ./...

# Each module once, under the first of the sets that has it, with the directories in which a licence may lie.
cat "$scratch/functions" "$scratch/command" "$scratch/tests" | awk -F '\t' '
  !($1 in set) { set[$1] = $5; order[++n] = $1; version[$1] = $2 }
  { directory = $4
    while (length(directory) >= length($3)) { at[$1 SUBSEP directory]; sub("/[^/]*$", "", directory) } }
  END {
    for (key in at) { split(key, part, SUBSEP); print set[part[1]] "\t" part[1] "\t" version[part[1]] "\t" part[2] }
  }' | sort >"$scratch/directories"

status=0
row() { # SET MODULE VERSION LICENCES...
  local set=$1 module=$2 version=$3 why
  shift 3
  printf '%-10s %-62s %-12s %s\n' "$set" "$module" "${version:0:12}" "${*:-none}"
  why=$(verdict "$@")
  [[ -z $why ]] || { echo "licences: $module: $why" >&2; status=1; }
}

printf '%-10s %-62s %-12s %s\n' IN MODULE VERSION LICENCE
goroot=$(go env GOROOT)
row functions 'Go and its standard library' "$(go env GOVERSION)" $(identify "$goroot/LICENSE")
for set in functions command tests; do
  while IFS=$'\t' read -r module version; do
    found=$(
      awk -F '\t' -v module="$module" '$2 == module { print $4 }' "$scratch/directories" | while read -r directory; do
        # Files that only sum up what others say are none.
        find "$directory" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'unlicense*' \) ! -iname '*summary*' -print
      done | while read -r file; do
        name=$(identify "$file")
        echo "${name:-unknown}"
      done | sort -u
    )
    row "$set" "$module" "$version" $found
  done < <(awk -F '\t' -v set="$set" '$1 == set { print $2 "\t" $3 }' "$scratch/directories" | sort -u)
done
exit "$status"
