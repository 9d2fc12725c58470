# Builds the service alone: in a container it uses the Postgres that DATABASE_URL names.
# It writes no files, so it also runs with a read-only root file system.
FROM rust:1.95-slim-bookworm AS builder
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bin tillmark

FROM debian:bookworm-slim
RUN groupadd --system --gid 10001 tillmark \
    && useradd --system --uid 10001 --gid tillmark --no-create-home --shell /usr/sbin/nologin tillmark
COPY --from=builder /build/target/release/tillmark /usr/local/bin/tillmark
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/tillmark/
USER 10001:10001
ENV TILLMARK_LISTEN=0.0.0.0:8080
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["tillmark"]
CMD ["serve"]
