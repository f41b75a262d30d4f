# `make help` lists what there is.
GO       ?= go
GOFLAGS  ?=
BIN      := bin/ourotail
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
LINT     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 30s
MODELRUNS ?= 300

.DEFAULT_GOAL := help
.PHONY: help build demo test race vet lint fuzz model crash chaos bench dist clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/ourotail
	$(GO) build $(GOFLAGS) -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/ourotail

demo: build ## follow an embedded node with a generated chain; Ctrl-C ends it
	@$(BIN) demo

test: ## run all tests
	$(GO) test $(GOFLAGS) ./...

race: ## run all tests under the race detector, the long ones shortened
	$(GO) test $(GOFLAGS) -race -short ./...

vet: ## go vet
	$(GO) vet ./...

lint: ## golangci-lint with .golangci.yml
	@if command -v golangci-lint >/dev/null; then golangci-lint run ./...; else $(GO) run $(LINT) run ./...; fi

fuzz: ## run every fuzz target for FUZZTIME (default 30s) each
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
	  done; done

model: ## play the whole application in virtual time, MODELRUNS seeds (default 300)
	OUROTAIL_MODEL_RUNS=$(MODELRUNS) OUROTAIL_MODEL_STEPS=200 $(GO) test -timeout 0 -run '^TestModel$$' -v .

crash: ## kill a follower hundreds of times, everywhere, and look at what is left (SEED=n repeats)
	$(GO) test ./internal/ordeal -run '^TestCrash$$' -count=1 -v -timeout 90m -args -long $(if $(SEED),-seed $(SEED))

chaos: ## a bad day of many thousand blocks for a follower and its readers (SEED=n repeats)
	$(GO) test ./internal/ordeal -run '^TestChaos$$' -count=1 -v -timeout 90m -args -long $(if $(SEED),-seed $(SEED))

bench: ## measure against comparators in one interleaved run and print a table
	$(GO) run ./internal/bench
	$(GO) test -run '^$$' -bench . -benchtime 2s ./hub ./ledger
	$(GO) test -run '^$$' -bench Rollback -benchtime 3x .

dist: ## static binaries for linux amd64 and arm64 in dist/
	@mkdir -p dist
	@for arch in amd64 arm64; do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o dist/ourotail-linux-$$arch ./cmd/ourotail && \
	  echo "dist/ourotail-linux-$$arch"; done
	@cp packaging/systemd/ourotail.service dist/ && cd dist && sha256sum ourotail-linux-* > SHA256SUMS

clean: ## remove build results
	rm -rf bin dist
