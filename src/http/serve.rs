//! Connections: accepted up to a bound, each with a deadline for its heads, ended in order.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, info, warn};

use super::coding::compressed;
use super::{App, HttpSettings, Phase, router};

/// How long to rest when the system refuses a connection, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` comes: then says that it is stopping, accepts nothing more, and returns
/// once all that was begun is answered, or after `settings.drain_timeout`.
pub async fn serve(listener: TcpListener, app: App, shutdown: impl Future<Output = ()>) {
    let (settings, readiness, work) = (app.settings, app.readiness.clone(), app.work.clone());
    let (router, connections) = (router(app), GracefulShutdown::new());
    let accepting = accept(&listener, &router, &settings, &connections);
    tokio::select! {
        () = shutdown => {}
        () = accepting => {}
    }
    readiness.enter(Phase::Stopping);
    drop(listener);
    work.close();
    info!("Stopping: waiting for {} open connections", connections.count());
    let drained = async {
        connections.shutdown().await;
        work.wait().await;
    };
    if tokio::time::timeout(settings.drain_timeout.to_duration(), drained).await.is_err() {
        warn!("Stopping: some requests were not finished in time");
    }
}

/// Accepts connections for ever.
async fn accept(
    listener: &TcpListener,
    router: &Router,
    settings: &HttpSettings,
    connections: &GracefulShutdown,
) {
    let room = Arc::new(Semaphore::new(settings.connections_max));
    loop {
        // Closed by nobody, so there is always a permit in the end.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => connect(stream, permit, router.clone(), settings, connections),
            Err(error) => {
                warn!(%error, "Could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn connect(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    router: Router,
    settings: &HttpSettings,
    connections: &GracefulShutdown,
) {
    // Small answers leave at once; a connection without this is only slower.
    let _ = stream.set_nodelay(true);
    // HTTP/1 alone: the builder that tells versions apart waits for a first byte without a deadline.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout.to_duration())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(compressed(router)));
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        let mut connection = pin!(connection);
        if let Err(error) = connection.as_mut().await {
            debug!(%error, "A connection broke");
        }
        drop(permit);
    });
}
