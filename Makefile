# make help lists the targets.
.PHONY: help build test race fuzz lint fmt verify run

help: ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the three binaries, in bin/
	go build -o bin/ ./cmd/...

test: ## all tests
	go test ./...

race: ## the packages that own goroutines, under the race detector
	go test -race -short ./pkg/store/... ./pkg/sqlitestore ./pkg/bus ./pkg/replica ./pkg/compactor ./pkg/gateway ./pkg/summarizer ./pkg/llm ./pkg/hook

fuzz: ## a minute on each wire format, and on what a model may answer
	go test -run '^$$' -fuzz '^FuzzAnthropic$$' -fuzztime 60s ./pkg/wire
	go test -run '^$$' -fuzz '^FuzzChat$$' -fuzztime 60s ./pkg/wire
	go test -run '^$$' -fuzz '^FuzzResponses$$' -fuzztime 60s ./pkg/wire
	go test -run '^$$' -fuzz '^FuzzAdopt$$' -fuzztime 60s ./pkg/constitution

bin/golangci-lint: internal/devtools/go.mod
	cd internal/devtools && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: bin/golangci-lint ## the linter, at the version that internal/devtools pins
	bin/golangci-lint run ./...

fmt: bin/golangci-lint ## formats as the linter wants it
	bin/golangci-lint fmt ./...

verify: ## everything that must hold before a change lands
	.ci/run

run: ## serve on this machine, with data in ./ullage-data
	go run ./cmd/gateway serve
