# Builds the service alone: in a container it uses the Postgres that DATABASE_URL names.
# It writes no files, so it also runs with a read-only root file system; and it needs no shell, so it has none.
FROM rust:1.95-slim-bookworm AS builder
# The allocator is built with make.
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bin tillmark

# What went into the binary, as a CycloneDX document.
FROM rust:1.95-slim-bookworm AS sbom
WORKDIR /build
RUN cargo install cargo-cyclonedx --locked --version 0.5.9
COPY . .
RUN scripts/sbom

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=builder /build/target/release/tillmark /usr/local/bin/tillmark
COPY --from=sbom /build/target/release/tillmark.cdx.json /build/LICENSE-MIT /build/LICENSE-APACHE /usr/share/doc/tillmark/
USER 65532:65532
ENV TILLMARK_LISTEN=0.0.0.0:8080
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=40s --retries=3 CMD ["tillmark", "healthcheck"]
ENTRYPOINT ["tillmark"]
CMD ["serve"]
