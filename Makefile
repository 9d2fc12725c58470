# The commands of this repository; each first installs what it misses.
#   make run    builds and starts Tillmark; ARGS="…" is passed on, e.g. ARGS="serve --listen 127.0.0.1:9000"
#   make test   every test, and the running service held against its API description
#   make lint   formatting, lints, documentation, dependencies
#   make release  target/release/tillmark, and beside it tillmark.cdx.json, which lists what went into it

ARGS ?= serve
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: run test lint release

run:
	@scripts/install
	cargo run --release --locked -- $(ARGS)

test:
	@scripts/install --with-python
	cargo test --locked
	cargo test --locked --features defects,faults --test defects --test campaign
	scripts/schemathesis

lint:
	@scripts/install --with-lint-tools
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps
	cargo deny --locked check bans licenses sources
	@scripts/check-advisories

release:
	@scripts/install --with-release-tools
	cargo build --release --locked --bin tillmark
	scripts/sbom
