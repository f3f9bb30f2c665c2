#!/usr/bin/env bash
# Draws the template's dashboard with the figures of a run on this machine: ten minutes of the local stack with a steady
# rate, a burst, duplicates, forgeries, old signatures, a partner that fails at first, and 20 seconds in
# which DynamoDB commits nothing.
#
#   scripts/dashboard-picture.sh [SECONDS]     600 by default; at least 240
#
# It needs what `make build` has built, and curl. Its stack has ports of its own, so another may run beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
http=127.0.0.1:18080
aws=127.0.0.1:18081
partner=19000
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
bin/dakghar listen --port "$partner" --fail-first 1 >/dev/null &
pids+=($!)
bin/dakghar subscription create --local --id partner --url "http://127.0.0.1:$partner/hooks" --profile brisk >/dev/null

# in_the_background COMMAND… runs for as long as it takes; what it says does not matter here.
in_the_background() {
  "$@" >/dev/null 2>&1 &
  pids+=($!)
}
send() { in_the_background bin/dakghar send --local "$@"; }

in_the_background bin/dakghar load --local --endpoint demo --type payment_intent.succeeded --rate 6 --duration "${seconds}s" \
  --mix 1KiB:60,10KiB:35,60KiB:5 --duplicates 0.15 --wait 0 --yes
send --endpoint shop --type orders/updated --count "$((seconds / 2))" --rate 0.5 --seed 7
sleep "$((seconds / 4))"
in_the_background bin/dakghar load --local --endpoint demo --type charge.refunded --rate 40 --duration 40s --seed 11 --wait 0 --yes
send --endpoint demo --type payment_intent.succeeded --count 90 --rate 2 --seed 12 --secret-file "$dir/wrong"
sleep "$((seconds / 4))"
send --endpoint demo --type payment_intent.succeeded --count 40 --rate 1 --seed 13 --at -1h
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
