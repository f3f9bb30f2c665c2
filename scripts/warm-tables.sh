#!/usr/bin/env bash
# Raises the warm throughput of a deployed stack's hot tables to what its parameters WarmWriteUnits and
# WarmReadUnits say: scripts/warm-tables.sh STACK
#
# A script and not a property of the template: goformation, which reads the template for the local stack, refuses a file
# that names WarmThroughput. The indexes stay as they are, and start at 4,000 (dakghar capacity says what each needs). Warm
# throughput only ever grows, costs once, and running this again changes nothing.
set -euo pipefail

stack=${1:?usage: scripts/warm-tables.sh STACK}
command -v aws >/dev/null || { echo "warm: the AWS CLI is missing; install it with: pip install awscli" >&2; exit 1; }

output() {
  aws cloudformation describe-stacks --stack-name "$stack" --output text \
    --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue | [0]"
}

writes=$(output WarmWriteUnits)
reads=$(output WarmReadUnits)
if [[ $writes == 0 && $reads == 0 ]]; then
  echo "warm: WarmWriteUnits and WarmReadUnits of $stack are 0; nothing to do"
  exit 0
fi

# raise TABLE asks for more where there is less, never for less.
raise() {
  local table=$1 now_writes now_reads want_writes want_reads
  read -r now_writes now_reads < <(aws dynamodb describe-table --table-name "$table" --output text \
    --query 'Table.WarmThroughput.[WriteUnitsPerSecond,ReadUnitsPerSecond]')
  want_writes=$((writes > now_writes ? writes : now_writes))
  want_reads=$((reads > now_reads ? reads : now_reads))
  if ((want_writes == now_writes && want_reads == now_reads)); then
    echo "warm: $table has $now_writes writes and $now_reads reads a second already"
    return
  fi
  aws dynamodb update-table --table-name "$table" --output text --query 'TableDescription.TableStatus' \
    --warm-throughput "WriteUnitsPerSecond=$want_writes,ReadUnitsPerSecond=$want_reads" >/dev/null
  echo "warm: $table goes from $now_writes to $want_writes writes and from $now_reads to $want_reads reads a second"
}

for table in InboxTableName OutboxTableName BodyTableName BusinessTableName DeliveryTableName; do
  raise "$(output "$table")"
done
