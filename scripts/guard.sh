#!/usr/bin/env bash
# Checks template.yaml, as SAM transforms it, with cfn-guard against infra/guard and AWS's Control Tower rules for IAM.
# The rules of our own are tested first. Wants `scripts/tools.sh python guard`; calls nobody.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PACKAGE=build/tools/guard/node_modules/@cdklabs/cdk-validator-cfnguard
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) readonly GUARD=$PACKAGE/bin/ubuntu/x86_64/cfn-guard ;;
  Linux-aarch64) readonly GUARD=$PACKAGE/bin/ubuntu/aarch64/cfn-guard ;;
  Darwin-x86_64) readonly GUARD=$PACKAGE/bin/macos/x86_64/cfn-guard ;;
  Darwin-arm64) readonly GUARD=$PACKAGE/bin/macos/aarch64/cfn-guard ;;
  *) echo "guard: AWS builds no cfn-guard for $(uname -sm); its rules were not checked" >&2; exit 0 ;;
esac
# The other Control Tower rules say what checkov says; their exceptions stand beside the resources as checkov reads them.
readonly RULES=(infra/guard/dakghar.guard "$PACKAGE/rules/control-tower/cfn-guard/identityandaccessmanagement")

said=$("$GUARD" test --rules-file infra/guard/dakghar.guard --test-data infra/guard/dakghar_tests.yaml) ||
  { printf '%s\n' "$said"; echo "guard: the rules' own tests fail" >&2; exit 1; }
mkdir -p build
build/tools/venv/bin/python scripts/transform.py template.yaml >build/transformed.json
"$GUARD" validate --rules "${RULES[@]}" --data build/transformed.json --show-summary fail
echo "guard: the rules' own tests pass, and the template keeps every rule"
