#!/usr/bin/env bash
# Checks every function under `sam local invoke`, and ingress under `sam local start-api` too, in containers, on DynamoDB
# Local and a local stack of its own whose triggers rest: what a function left behind waits for the next one that is
# invoked here. Every function and every sample of events/ has its turn. Where it cannot run it says why and succeeds.
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

# What the samples are about; events/README.md.
readonly EVENT=in_fexgy3sbctidrvygpkdix6qgrpywlsjt7otitief DELIVERY=dl_nsm6itb5bl5ghbob2d67caxb6xe7r5vjgfjvbwyv

# told prints one line to compare; scripts/sam-local-told.py says how.
told() {
  python3 scripts/sam-local-told.py "$@"
}

# runs FUNCTION SAMPLE [now] invokes a function with a sample, as committed or signed now.
runs() {
  local name="$1 $2${3:+, signed now}" event=events/$2.json
  printf '%s\n' "$1" "$2" >>"$LOGS/ran.txt"
  if [[ ${3:-} == now ]]; then scripts/sign-event.py "$event"; else cat "$event"; fi | invoked "$1" "$name"
}

# works_on QUEUE FUNCTION invokes a function with what waits in a queue.
works_on() {
  local waiting=$LOGS/$1.json
  scripts/receive-event.py "$1" >"$waiting"
  invoked "$2" "$2, $(grep -o '"messageId"' "$waiting" | wc -l | tr -d ' ') from $1" <"$waiting"
}

# invoked FUNCTION NAME invokes a function with the event on standard input.
invoked() {
  SAM_LOCAL_BUILD=no scripts/sam-local.sh invoke "$1" -e - 2>"$LOGS/invoke-${2//[ ,]/-}.log" | told answer "$2"
}

# sent NAME FLAG... posts an event to start-api.
sent() {
  local name=$1
  shift
  bin/dakghar send --local --url "http://127.0.0.1:$api/in/stripe/demo" --endpoint demo \
    --type payment_intent.succeeded --json "$@" >"$LOGS/sent.json" || true
  told sent "$name" <"$LOGS/sent.json"
}

# row NAME ID tells an event's row, and its promise.
row() {
  bin/dakghar inbox show --local --json "$2" | told row "$1"
}

# the_reconciler_looks_at ID waits until the reconciler looks after an event whose promise nobody kept, a minute after
# it was accepted.
the_reconciler_looks_at() {
  local at
  at=$(bin/dakghar inbox show --local --json "$1" | python3 -c 'import datetime, json, sys
print(int(datetime.datetime.fromisoformat(json.load(sys.stdin)["outbox"]["wake_at"].replace("Z", "+00:00")).timestamp()) + 1)')
  while (($(date +%s) <= at)); do sleep 1; done
}

# never_run names functions and samples that had no turn.
never_run() {
  { python3 -c 'import json; print("\n".join(json.load(open("infra/sam-local.env.json"))))'; cd events && ls -- *.json; } |
    sed 's/\.json$//' | sort | comm -23 - <(sort -u "$LOGS/ran.txt") | sed 's/^/had no turn: /'
}

walk() {
  # Two events that nobody relays: the reconciler's, below.
  sent "start-api"
  sent "start-api, again"
  sent "start-api, a body for the bucket" --seed 2 --body-bytes 200000
  local forgotten
  forgotten=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["inbox_id"])' <"$LOGS/sent.json")

  runs IngressFunction http-post-json now
  runs IngressFunction http-headers-as-sam-local now
  runs IngressFunction http-post-base64 now
  runs IngressFunction http-post-json
  runs IngressFunction http-signature-repeated
  runs IngressFunction http-body-altered
  runs IngressFunction http-base64-broken
  runs IngressFunction http-content-type-missing now
  runs IngressFunction http-content-type-twice now
  runs IngressFunction http-endpoint-unknown now
  runs IngressFunction http-get
  runs IngressFunction http-oversize-declared now
  runs IngressFunction http-slack-url-verification now
  row "the sample's row" "$EVENT"

  runs RelayFunction stream-insert
  row "the sample's row" "$EVENT"
  works_on EventQueue ProcessorFunction
  row "the sample's row" "$EVENT"
  runs RelayFunction stream-modify
  runs RelayFunction stream-modify-published
  runs RelayFunction stream-remove-by-ttl
  works_on EventQueue ProcessorFunction
  runs ProcessorFunction queue-batch

  runs DispatcherFunction queue-deliveries
  runs DispatcherFunction queue-deliveries
  bin/dakghar delivery show --local --json "$DELIVERY" | told delivery "the sample's delivery"

  the_reconciler_looks_at "$forgotten"
  runs ReconcilerFunction schedule
  row "the forgotten row" "$forgotten"
  works_on EventQueue ProcessorFunction
  row "the forgotten row" "$forgotten"

  # No endpoint asks: a container reaches no front door on this machine, so a canary would be missing whatever was right.
  runs CanaryFunction schedule
  never_run
}

rm -rf "$LOGS"
mkdir -p "$LOGS"
front=$(free_port) aws=$(free_port) api=$(free_port)
make --no-print-directory build >"$LOGS/build.log"
background stack "$front" bin/dakghar dev --no-triggers --dynamodb "$DYNAMODB_LOCAL_URL" \
  --http "127.0.0.1:$front" --aws "127.0.0.1:$aws"
export DAKGHAR_LOCAL_URL=http://127.0.0.1:$aws
{
  printf whsec_synthetic | bin/dakghar endpoint create --local --provider stripe --id demo --tenant acme --secret-file -
  printf synthetic_slack_signing_secret | bin/dakghar endpoint create --local --provider slack --id team --tenant acme --secret-file -
  bin/dakghar subscription create --local --id demo --tenant acme --url https://nobody.example.com/hooks | grep -v whsec_
} >"$LOGS/setup.log"
background start-api "$api" scripts/sam-local.sh start-api --port "$api"

walk | tee "$LOGS/got.txt"
diff - "$LOGS/got.txt" <<'WANT' || { echo "sam-local-check: failed (< wanted, > got); logs are in build/sam-local-check" >&2; exit 1; }
start-api: 200 accepted
start-api, again: 200 duplicate
start-api, a body for the bucket: 200 accepted
IngressFunction http-post-json, signed now: 200 accepted
IngressFunction http-headers-as-sam-local, signed now: 200 duplicate
IngressFunction http-post-base64, signed now: 200 duplicate
IngressFunction http-post-json: 401 unauthorized
IngressFunction http-signature-repeated: 401 unauthorized
IngressFunction http-body-altered: 401 unauthorized
IngressFunction http-base64-broken: 400 body_malformed
IngressFunction http-content-type-missing, signed now: 415 unsupported_media_type
IngressFunction http-content-type-twice, signed now: 415 unsupported_media_type
IngressFunction http-endpoint-unknown, signed now: 404 not_found
IngressFunction http-get: 405 method_not_allowed
IngressFunction http-oversize-declared, signed now: 413 body_too_large
IngressFunction http-slack-url-verification, signed now: 200 synthetic-challenge-0001
the sample's row: RECEIVED payment_intent.succeeded, a promise, published 0x
RelayFunction stream-insert: all done
the sample's row: RECEIVED payment_intent.succeeded, a promise, published 1x
ProcessorFunction, 1 from EventQueue: all done
the sample's row: PROCESSED applied payment_intent.succeeded, no promise
RelayFunction stream-modify: all done
RelayFunction stream-modify-published: all done
RelayFunction stream-remove-by-ttl: all done
ProcessorFunction, 1 from EventQueue: all done
ProcessorFunction queue-batch: gave back 2 3
DispatcherFunction queue-deliveries: gave back 3 4 5
DispatcherFunction queue-deliveries: gave back 3 4 5
the sample's delivery: RETRY, partner not found, after attempts: 1
ReconcilerFunction schedule: done
the forgotten row: RECEIVED payment_intent.succeeded, a promise, published 1x
ProcessorFunction, 2 from EventQueue: all done
the forgotten row: PROCESSED applied payment_intent.succeeded, no promise
CanaryFunction schedule: done
WANT
echo "sam-local-check: ok"
