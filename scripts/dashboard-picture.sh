#!/usr/bin/env bash
# Draws the template's dashboard with the figures of a run on this machine: ten minutes of the local stack with a steady
# rate, a burst, duplicates, forgeries, old signatures, older news, a partner that fails at first, a worker that is
# killed, and 20 seconds in which DynamoDB commits nothing.
#
#   scripts/dashboard-picture.sh [SECONDS]     600 by default; at least 240
#
# It needs what `make build` has built, and curl. Its stack has ports of its own, so another may run beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
http=127.0.0.1:18080
aws=127.0.0.1:18081
dir=$(mktemp -d)
pids=()
# Only what was started here, by its id.
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

export DAKGHAR_LOCAL_URL=http://$aws
bin/dakghar dev --http "$http" --aws "$aws" >"$dir/dev.log" 2>&1 &
pids+=($!)
until grep -q '^ready ' "$dir/dev.log"; do
  kill -0 "${pids[0]}" || { cat "$dir/dev.log"; exit 1; }
  sleep 0.2
done

printf 'whsec_test_secret_for_the_picture' >"$dir/secret"
printf 'whsec_another_secret_than_the_one' >"$dir/wrong"
bin/dakghar endpoint create --local --provider stripe --id demo --secret-file "$dir/secret" >/dev/null
bin/dakghar endpoint create --local --provider shopify --id shop --secret-file "$dir/secret" >/dev/null
# One partner takes everything, another one fails once for each delivery that it gets.
bin/dakghar listen --port 19000 >/dev/null &
pids+=($!)
bin/dakghar listen --port 19001 --fail-first 1 >/dev/null &
pids+=($!)
bin/dakghar subscription create --local --id partner --url http://127.0.0.1:19000/hooks >/dev/null
bin/dakghar subscription create --local --id fails-once --url http://127.0.0.1:19001/hooks --profile brisk --type 'subscription.*' >/dev/null

# in_the_background COMMAND… runs for as long as it takes; what it says does not matter here.
in_the_background() {
  "$@" >/dev/null 2>&1 &
  pids+=($!)
}
send() { in_the_background bin/dakghar send --local "$@"; }

# older_news sends versions of one object in the wrong order, now and then.
older_news() {
  local seed
  for ((seed = 1; seed <= seconds / 15; seed++)); do
    bin/dakghar send --local --endpoint shop --type orders/updated --versions 3,1,2 --seed "$seed" || true
    bin/dakghar send --local --endpoint demo --type customer.subscription.updated --seed "$seed" || true
    sleep 14
  done
}

in_the_background bin/dakghar load --local --endpoint demo --type payment_intent.succeeded --rate 6 --duration "${seconds}s" \
  --mix 1KiB:60,10KiB:35,60KiB:5 --duplicates 0.15 --wait 0 --yes
in_the_background older_news
sleep "$((seconds / 4))"
in_the_background bin/dakghar load --local --endpoint demo --type charge.refunded --rate 30 --duration 40s --seed 11 --wait 0 --yes
send --endpoint demo --type payment_intent.succeeded --count 150 --rate 2 --seed 12 --secret-file "$dir/wrong"
sleep "$((seconds / 4))"
send --endpoint demo --type payment_intent.succeeded --count 100 --rate 1 --seed 13 --at -1h
curl -fsS -o /dev/null -X POST "http://$aws/_dakghar/kill" -H 'content-type: application/json' -d '{"function":"ProcessorFunction"}'
sleep "$((seconds / 8))"
fault=http://$aws/_dakghar/fault
curl -fsS -o /dev/null -X POST "$fault" -H 'content-type: application/json' \
  -d '{"service":"dynamodb","operation":"TransactWriteItems","mode":"stall"}'
sleep 20
curl -fsS -o /dev/null -X DELETE "$fault"
sleep "$((seconds / 8 + seconds / 4 - 20))"

go run ./internal/dashboard/picture -log "$dir/dev.log" -out docs/operate/dashboard.svg
if [[ -n ${KEEP_LOG:-} ]]; then cp "$dir/dev.log" "$KEEP_LOG"; fi
echo "docs/operate/dashboard.svg: $(wc -c <docs/operate/dashboard.svg) bytes"
