#!/usr/bin/env bash
# Runs a function under `sam local`, in a container, on DynamoDB Local:
#
#   scripts/sam-local.sh [start-api | invoke FUNCTION -e EVENT] [OPTION...]
#
# In another shell, the local stack must run (DYNAMODB=local make run): it makes the tables in DynamoDB Local and has the
# secrets, the key, the bucket and the queue. DAKGHAR_LOCAL_URL names it where it is not at http://127.0.0.1:8081.
#
# The functions are built into build/sam-local, for the container engine's architecture (SAM_LOCAL_ARCH=arm64 or x86_64
# for another): what `sam build` made for AWS stays as it is. SAM_LOCAL_BUILD=no takes what was built there before.
# docs/run/sam-local.md says more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

engine=$(docker_architecture) || {
  echo "sam-local: no container engine answers (docker info fails), and sam local runs functions in containers." >&2
  echo "sam-local: install one with: apt-get install -y docker.io" >&2
  exit 1
}
architecture=${SAM_LOCAL_ARCH:-$engine}
case $architecture in
  x86_64) goarch=amd64 ;;
  arm64) goarch=arm64 ;;
  *) echo "sam-local: Lambda has no architecture $architecture; set SAM_LOCAL_ARCH to x86_64 or arm64" >&2; exit 2 ;;
esac

bin=build/tools/venv/bin
built=build/sam-local
stack=${DAKGHAR_LOCAL_URL:-http://127.0.0.1:8081}
stack=${stack%/}
export SAM_CLI_TELEMETRY=0
# The SAM CLI asks STS whose keys these are. They are nobody's, and AWS need not hear of them.
export AWS_ENDPOINT_URL_STS=http://127.0.0.1:1 AWS_MAX_ATTEMPTS=1
export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1

(answers "${stack##*:}") || {
  echo "sam-local: nothing answers at $stack; the local stack must run, in another shell: DYNAMODB=local make run" >&2
  exit 1
}

if [[ ${SAM_LOCAL_BUILD:-} != no ]]; then
  log=$(LAMBDA_GOARCH=$goarch "$bin/sam" build --build-dir "$built" 2>&1) || { printf '%s\n' "$log" >&2; exit 1; }
fi

action=${1:-start-api}
(($# == 0)) || shift
options=(--template "$built/local.yaml" --env-vars "$built/local.env.json")
# As in Lambda, one process serves request after request.
[[ $action != start-api ]] || options+=(--warm-containers LAZY)
# A base image that is here is used as it is, so that one made by hand will do and no registry is asked.
! docker image inspect "$(lambda_image "$architecture")" >/dev/null 2>&1 || options+=(--skip-pull-image)

# An engine that was never told the bridge's own address lists the network alone.
bridge=$(docker network inspect bridge --format '{{with index .IPAM.Config 0}}{{or .Gateway .Subnet}}{{end}}')
exec "$bin/python" scripts/sam-local.py "$stack" "$built" "$architecture" "$bridge" \
  "$bin/sam" local "$action" "${options[@]}" "$@"
