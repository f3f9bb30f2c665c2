#!/usr/bin/env bash
# Checks the ingress function under `sam local invoke` and `sam local start-api`, in containers, on DynamoDB Local and a
# local stack of its own. Where it cannot run it says why and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

readonly LOGS=$PWD/build/sam-local-check

skip() {
  echo "sam-local-check: skipped: $*"
  exit 0
}

if [[ ${1:-} != --walk ]]; then
  architecture=$(docker_architecture) ||
    skip "no container engine answers (docker info fails); install one with: apt-get install -y docker.io"
  image=$(lambda_image "$architecture")
  docker image inspect "$image" >/dev/null 2>&1 || timeout 300 docker pull --quiet "$image" >/dev/null ||
    skip "$image is not here and cannot be pulled; docs/run/sam-local.md says how to make a stand-in"
  exec scripts/with-oracles.sh --only dynamodb "${BASH_SOURCE[0]}" --walk
fi

pids=()
stop() {
  trap - EXIT INT TERM HUP
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# background NAME PORT COMMAND... starts a server and waits until it answers; its output goes to a log.
background() {
  local name=$1 port=$2
  shift 2
  "$@" >"$LOGS/$name.log" 2>&1 </dev/null &
  pids+=("$!")
  await_answer "$port" "$!" 90 && return 0
  echo "sam-local-check: $name does not answer; its log ends:" >&2
  tail -n 20 "$LOGS/$name.log" >&2
  return 1
}

# told CODE names what the function answered: its status, and the result or the error of its body.
told() {
  python3 -c 'import json, sys
answer = json.load(sys.stdin)
body = json.loads(answer["body"])
print(sys.argv[1] + ":", answer["statusCode"], body.get("result") or body.get("error"))' "$1"
}

# invoked EVENT [now] runs ingress with a sample, as committed or signed now.
invoked() {
  local event=events/$1.json
  if [[ ${2:-} == now ]]; then scripts/sign-event.py "$event"; else cat "$event"; fi |
    SAM_LOCAL_BUILD=no scripts/sam-local.sh invoke IngressFunction -e - 2>"$LOGS/invoke-$1.log" | told "$1${2:+ signed now}"
}

# sent NAME FLAG... posts a sample to start-api.
sent() {
  local name=$1
  shift
  bin/dakghar send --local --url "http://127.0.0.1:$api/in/stripe/demo" --endpoint demo \
    --type payment_intent.succeeded --json "$@" >"$LOGS/sent.json" || true
  python3 -c 'import json, sys
answer = json.load(sys.stdin)
print(sys.argv[1] + ":", answer["status"], answer["result"])' "$name" <"$LOGS/sent.json"
}

# done_with ID waits until the stack's relay and processor are through with an event, and names its end.
done_with() {
  local deadline=$((SECONDS + 30)) line
  until line=$(bin/dakghar inbox show --local --json "$1") && [[ $line == *'"status":"PROCESSED"'* ]]; do
    ((SECONDS < deadline)) || break
    sleep 0.2
  done
  python3 -c 'import json, sys
row = json.load(sys.stdin)
print("its row:", row["status"], row["outcome"], row["event_type"])' <<<"$line"
}

walk() {
  invoked http-post-json now
  invoked http-headers-as-sam-local now
  invoked http-post-base64 now
  invoked http-post-json
  invoked http-get
  invoked http-oversize-declared now
  sent "start-api"
  sent "start-api, again"
  sent "start-api, a body for the bucket" --seed 2 --body-bytes 200000
  done_with "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["inbox_id"])' <"$LOGS/sent.json")"
}

rm -rf "$LOGS"
mkdir -p "$LOGS"
front=$(free_port) aws=$(free_port) api=$(free_port)
make --no-print-directory build >"$LOGS/build.log"
background stack "$front" bin/dakghar dev --dynamodb "$DYNAMODB_LOCAL_URL" --http "127.0.0.1:$front" --aws "127.0.0.1:$aws"
export DAKGHAR_LOCAL_URL=http://127.0.0.1:$aws
printf whsec_synthetic |
  bin/dakghar endpoint create --local --provider stripe --id demo --secret-file - >"$LOGS/endpoint.log"
background start-api "$api" scripts/sam-local.sh start-api --port "$api"

walk | tee "$LOGS/got.txt"
diff - "$LOGS/got.txt" <<'WANT' || { echo "sam-local-check: failed (< wanted, > got); logs are in build/sam-local-check" >&2; exit 1; }
http-post-json signed now: 200 accepted
http-headers-as-sam-local signed now: 200 duplicate
http-post-base64 signed now: 200 duplicate
http-post-json: 401 unauthorized
http-get: 405 method_not_allowed
http-oversize-declared signed now: 413 body_too_large
start-api: 200 accepted
start-api, again: 200 duplicate
start-api, a body for the bucket: 200 accepted
its row: PROCESSED applied payment_intent.succeeded
WANT
echo "sam-local-check: ok"
