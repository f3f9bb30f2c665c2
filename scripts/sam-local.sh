#!/usr/bin/env bash
# Runs `sam local` against DynamoDB Local: scripts/sam-local.sh [start-api | invoke FUNCTION -e EVENT] [OPTION...]
#
# In another shell, the local stack must run where containers reach it. It makes the tables in DynamoDB Local on port
# 8000 and serves the rest (secrets, key, bucket, queue) on 8081; on Linux containers come in by Docker's bridge:
#
#   DYNAMODB=local make run DEV_FLAGS='--aws 172.17.0.1:8081'
#
# The functions find both as host.docker.internal, as infra/sam-local.env.json says. Two things are made on the way:
# a copy of the built template that declares the SDK's endpoint variables, since `sam local` passes a function only what
# its template declares and the deployed one does not, and a copy of the environment with the running stack's key.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

if ! docker info >/dev/null 2>&1; then
  echo "sam-local: skipped: no container engine answers (docker info fails), and sam local runs functions in containers."
  echo "sam-local: install one with: apt-get install -y docker.io"
  exit 0
fi

bin=build/tools/venv/bin
built=.aws-sam/build
bridge=$(docker network inspect bridge --format '{{(index .IPAM.Config 0).Gateway}}')
export SAM_CLI_TELEMETRY=0 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1

# data_key prints the ARN of the running local stack's key.
data_key() {
  "$bin/python" - "$@" <<'PYTHON'
import json, sys, urllib.request
for host in sys.argv[1:]:
    try:
        with urllib.request.urlopen(f"http://{host}:8081/_dakghar/stack", timeout=3) as answer:
            print(json.load(answer)["outputs"]["DataKeyArn"])
            sys.exit(0)
    except OSError:
        continue
sys.exit(1)
PYTHON
}

key=$(data_key "$bridge" 127.0.0.1) && (answers 8000) || {
  echo "sam-local: the local stack and DynamoDB Local must run; in another shell:" >&2
  echo "sam-local:   DYNAMODB=local make run DEV_FLAGS='--aws $bridge:8081'" >&2
  exit 1
}

"$bin/sam" build
sed 's/^\( *\)Variables:$/&\n\1  AWS_ENDPOINT_URL: ""\n\1  AWS_ENDPOINT_URL_DYNAMODB: ""/' "$built/template.yaml" >"$built/local.yaml"
sed "s|filled-in-by-scripts-sam-local|$key|" infra/sam-local.env.json >"$built/local.env.json"

action=${1:-start-api}
(($# == 0)) || shift
exec "$bin/sam" local "$action" --template "$built/local.yaml" --env-vars "$built/local.env.json" \
  --add-host host.docker.internal:host-gateway "$@"
