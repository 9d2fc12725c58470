//! Connections: accepted, bounded in the time they may take, and drained at the end.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, info, warn};

use super::router;
use super::state::AppState;

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves requests until `ask_to_end` comes back; then takes no new connections and waits up to
/// `drain_max` for the requests under way.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    ask_to_end: impl Future<Output = ()> + Send,
    drain_max: Duration,
) {
    let server = server(&state);
    let service = TowerToHyperService::new(router(state));
    let connections = GracefulShutdown::new();
    let mut ask_to_end = std::pin::pin!(ask_to_end);
    loop {
        let accepted = tokio::select! {
            () = &mut ask_to_end => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let io = TokioIo::new(without_delay(stream));
                let connection = server.serve_connection(io, service.clone()).into_owned();
                let connection = connections.watch(connection);
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        debug!(error = %error, "A connection ended early");
                    }
                });
            }
            // Out of file descriptors, most likely: some connection will end soon.
            Err(error) => {
                warn!(error = %error, "Could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(drain_max, connections.shutdown()).await.is_err() {
        info!("Some requests were still under way at the end");
    }
}

fn server(state: &AppState) -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new()).http1_only();
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(state.settings().header_timeout.to_duration());
    server
}

/// Answers are small: they go out at once.
fn without_delay(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(error = %error, "Could not turn off the delay of a connection");
    }
    stream
}
