# `make` lists the targets. A target's description stands behind its ##.
#
# The targets build-<LogicalId> are called by `sam build` (template.yaml: BuildMethod makefile), which sets
# ARTIFACTS_DIR to where it wants the function.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

FUNCTIONS := IngressFunction RelayFunction ProcessorFunction DispatcherFunction ReconcilerFunction CanaryFunction
# IngressFunction is built from functions/ingress, and so on.
source_of = ./functions/$(shell printf '%s' '$(1:Function=)' | tr '[:upper:]' '[:lower:]')

# lambda.norpc leaves out the RPC server of a runtime that is gone; trimmed paths and no VCS stamp make the same source
# the same bytes anywhere.
LAMBDA_TAGS  := -tags lambda.norpc
LAMBDA_FLAGS := $(LAMBDA_TAGS) -trimpath -buildvcs=false -ldflags '-s -w'

# These share one moto, which they empty between tests, and one DynamoDB Local, whose stream iterators are disturbed by
# what happens to other tables. So they run one at a time.
ORACLE_PACKAGES := $(addprefix ./internal/,body dynamo secret devstack/dynamodb devstack/kms devstack/s3 devstack/secretsmanager devstack/sqs)

PYTHON_BIN := build/tools/venv/bin
GO_BIN     := build/tools/bin
# It sends nothing and fetches nothing: no key is given, and guidelines are not looked up.
CHECKOV    := build/tools/checkov/bin/checkov --skip-download --compact --quiet
SAM        := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} $(PYTHON_BIN)/sam
STACK      ?= dakghar
TEST_FLAGS ?=
FUZZTIME   ?= 10s
SAM_LOCAL  ?= start-api
DEV_FLAGS  ?=
# What template.yaml declares. Only scripts/sam-local.sh builds for another, since containers run on this machine.
LAMBDA_GOARCH ?= arm64

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z-]*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: build ## Run everything on this machine; needs Go alone (DYNAMODB=local or =http://… puts another DynamoDB behind it, DEV_FLAGS='…' are those of dakghar dev)
ifeq ($(DYNAMODB),local)
	scripts/tools.sh dynamodb
	DYNAMODB_LOCAL_PORT=$${DYNAMODB_LOCAL_PORT:-8000} scripts/with-oracles.sh --only dynamodb \
	  bash -c 'DYNAMODB=$$DYNAMODB_LOCAL_URL exec bin/dakghar dev $(DEV_FLAGS)'
else
	exec bin/dakghar dev $(DEV_FLAGS)
endif

.PHONY: build
build: ## Build the command and the functions for this machine, into bin/ and build/<LogicalId>/bootstrap
	CGO_ENABLED=0 go build -trimpath -o bin/dakghar ./cmd/dakghar
	@$(foreach f,$(FUNCTIONS),echo 'go build -o build/$(f)/bootstrap $(call source_of,$(f))'; CGO_ENABLED=0 go build $(LAMBDA_TAGS) -trimpath -o build/$(f)/bootstrap $(call source_of,$(f));)

.PHONY: package
package: ## Build the functions for AWS and zip them, into build/package/<LogicalId>.zip
	rm -rf build/package
	$(foreach f,$(FUNCTIONS),$(MAKE) --no-print-directory build-$(f) ARTIFACTS_DIR='$(CURDIR)/build/package/$(f)';)
	$(foreach f,$(FUNCTIONS),scripts/zip.sh build/package/$(f).zip build/package/$(f)/bootstrap;)

.PHONY: warm
warm: ## Prepare a deployed stack's tables for its WarmWriteUnits and WarmReadUnits (STACK=name; needs the AWS CLI)
	scripts/warm-tables.sh '$(STACK)'

##@ Check

.PHONY: check
check: ## Everything that CI runs
	scripts/tools.sh race dynamodb python lint
	$(MAKE) --no-print-directory fmt-check vet lint
	go test -count=1 ./internal/archtest ./internal/templatetest
	$(MAKE) --no-print-directory licences
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory validate
	$(MAKE) --no-print-directory sam-check

.PHONY: test
test: ## All tests with the race detector, on the embedded stack and on DynamoDB Local and moto
	scripts/tools.sh race dynamodb python
	scripts/tools.sh partner || echo 'the tests that need it will say that they are skipped'
	scripts/with-oracles.sh bash -c ' \
	  env -u MOTO_URL -u DYNAMODB_LOCAL_URL go test -race -timeout 15m $(TEST_FLAGS) $$(go list ./... | grep -vxF "$$(go list $(ORACLE_PACKAGES))") && \
	  go test -race -p 1 -timeout 15m $(TEST_FLAGS) $(ORACLE_PACKAGES)'

.PHONY: test-short
test-short: ## Tests on the embedded stack only; needs Go alone
	env -u DYNAMODB_LOCAL_URL -u MOTO_URL go test -short $(TEST_FLAGS) ./...

.PHONY: crash
crash: ## Kill every program before and after each of its AWS calls, in every scenario, on both stores; then show every fault live
	scripts/tools.sh dynamodb
	CRASH=all scripts/with-oracles.sh --only dynamodb \
	  go test -count=1 -timeout 45m -v -run '^TestCrash$$' ./internal/sim | grep -Ev '^(=== | *--- PASS)'
	CRASH=all go test -count=1 -timeout 15m -v -run '^TestFaultsLive$$' ./internal/e2e | grep -v '^=== '

.PHONY: soak
soak: build ## Saturate the workers, stop them for 20,000 accepted events, restore them; into build/soak.json
	SOAK_JSON='$(CURDIR)/build/soak.json' go test -count=1 -timeout 45m -run '^TestBacklog$$' -v ./internal/bench

.PHONY: bench
bench: build package ## Measure what DESIGN bounds, into build/bench.json
	scripts/tools.sh dynamodb
	BENCH_JSON='$(CURDIR)/build/bench.json' scripts/with-oracles.sh --only dynamodb \
	  go test -count=1 -timeout 30m -run '^TestFigures$$' -v ./internal/bench

.PHONY: dashboard-picture
dashboard-picture: build ## Draw the dashboard with the figures of ten minutes of the local stack, into docs/operate/dashboard.svg
	scripts/dashboard-picture.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh '$(FUZZTIME)'

.PHONY: lint
lint: ## Run golangci-lint, at its pinned version
	scripts/tools.sh lint
	$(GO_BIN)/golangci-lint run ./...

.PHONY: vet
vet:
	go vet ./...
	go vet $(LAMBDA_TAGS) ./functions/...

.PHONY: fmt
fmt: ## Format the Go code
	scripts/tools.sh lint
	$(GO_BIN)/golangci-lint fmt ./...

.PHONY: fmt-check
fmt-check:
	scripts/tools.sh lint
	$(GO_BIN)/golangci-lint fmt --diff ./...
	bash -n scripts/*.sh .ci/run

.PHONY: vuln
vuln: ## Look dependencies up in Go's vulnerability database (needs the network)
	scripts/tools.sh vuln
	$(GO_BIN)/govulncheck ./...

.PHONY: licences
licences: ## List what is linked into functions, command and tests with its licence; fail on one that is unknown or copyleft
	scripts/licences.sh

.PHONY: reproducible
reproducible: ## Build the functions for AWS twice, in two places, and compare the digests (minutes; FUNCTIONS=IngressFunction for one)
	scripts/reproducible.sh $(FUNCTIONS)

.PHONY: sbom
sbom: package ## List what each function is made of, as CycloneDX, into build/package/<LogicalId>.cdx.json
	scripts/tools.sh sbom
	scripts/sbom.sh build/package

##@ AWS and SAM

.PHONY: validate
validate: ## Check template.yaml with cfn-lint, sam validate --lint, checkov, cfn-guard and sam build; infra/edge.yaml too
	scripts/tools.sh python checkov guard
	$(PYTHON_BIN)/cfn-lint template.yaml infra/edge.yaml -c I
	$(SAM) validate --lint
	$(CHECKOV) --framework cloudformation --file template.yaml
	scripts/guard.sh
	$(SAM) build

.PHONY: sam-local
sam-local: ## Run ingress, or any function, under sam local on DynamoDB Local; needs Docker (SAM_LOCAL='invoke RelayFunction -e …')
	scripts/tools.sh python
	scripts/sam-local.sh $(SAM_LOCAL)

.PHONY: sam-check
sam-check: ## Check every function under sam local on DynamoDB Local; says why where it cannot (no engine, no base image)
	scripts/tools.sh dynamodb python
	scripts/sam-local-check.sh

# `sam build` calls these, one a function. The digest beside the program has SAM publish a version when nothing but a setting
# changed: it compares what was built, and does not see the values of parameters. RELEASE marks a build that is to be another
# version of the same source. `make package` leaves the digest out.
.PHONY: $(addprefix build-,$(FUNCTIONS))
$(addprefix build-,$(FUNCTIONS)): build-%:
	mkdir -p "$(ARTIFACTS_DIR)"
	CGO_ENABLED=0 GOOS=linux GOARCH=$(LAMBDA_GOARCH) go build $(LAMBDA_FLAGS) -o "$(ARTIFACTS_DIR)/bootstrap" $(call source_of,$*)
	{ cat template.yaml samconfig.toml; printf '%s' '$(RELEASE)'; } | { sha256sum 2>/dev/null || shasum -a 256; } >"$(ARTIFACTS_DIR)/settings.sha256"

##@ Housekeeping

.PHONY: tools
tools: ## Install the tools that tests and checks need, into build/tools
	scripts/tools.sh race dynamodb python checkov guard partner lint

.PHONY: clean
clean: ## Remove what was built, but for the tools
	rm -rf bin .aws-sam
	find build -mindepth 1 -maxdepth 1 ! -name tools -exec rm -rf {} + 2>/dev/null || true
