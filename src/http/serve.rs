//! Connections: accepted up to a bound, each with a deadline for its heads, ended in order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;
use tracing::{debug, info, warn};

use super::coding::compressed;
use super::connections::{Coming, Going, Place};
use super::{App, Phase, router};
use crate::domain::Span;

/// How long to rest when the system refuses a connection, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` comes: then says that it is stopping, accepts nothing more, and returns
/// once all that was begun is answered, or after the settings' `drain_timeout`.
pub async fn serve(listener: TcpListener, app: App, shutdown: impl Future<Output = ()>) {
    let (connections, work) = (app.connections.clone(), app.work.clone());
    let [drain_timeout, header_timeout] =
        [app.settings.drain_timeout, app.settings.header_timeout].map(Span::to_duration);
    let (router, open) = (router(app.clone()), GracefulShutdown::new());
    tokio::select! {
        () = shutdown => {}
        () = accept(&listener, &router, &app, &open) => {}
    }
    app.readiness.enter(Phase::Stopping);
    drop((listener, app));
    work.close();
    info!("Stopping: waiting for {} open connections", open.count());
    let drained = async {
        tokio::select! {
            () = open.shutdown() => {}
            () = connections.close_those_that_wait(header_timeout) => {}
        }
        work.wait().await;
    };
    if tokio::time::timeout(drain_timeout, drained).await.is_err() {
        warn!("Stopping: some requests were not finished in time");
    }
}

/// Accepts connections for ever.
async fn accept(listener: &TcpListener, router: &Router, app: &App, open: &GracefulShutdown) {
    let header_timeout = app.settings.header_timeout.to_duration();
    loop {
        let room = app.connections.room(header_timeout).await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let place = app.connections.enter(room);
                connect(stream, &Arc::new(place), router.clone(), header_timeout, open);
            }
            Err(error) => {
                warn!(%error, "Could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn connect(
    stream: TcpStream,
    place: &Arc<Place>,
    router: Router,
    header_timeout: Duration,
    open: &GracefulShutdown,
) {
    // Small answers leave at once; a connection without this is only slower.
    let _ = stream.set_nodelay(true);
    let at = Arc::clone(place);
    let router = compressed(router);
    let answering = service_fn(move |request: hyper::Request<_>| {
        let (mut router, place) = (router.clone(), Arc::clone(&at));
        async move {
            let request = request.map(|body| Coming::new(body, Arc::clone(&place)));
            let response = router.call(request).await?;
            Ok::<_, Infallible>(response.map(|body| Going::new(body, place)))
        }
    });
    // HTTP/1 alone: the builder that tells versions apart waits for a first byte without a deadline.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client may say that it sends no more and wait for its answer all the same.
        .half_close(true)
        .header_read_timeout(header_timeout)
        .serve_connection(TokioIo::new(stream), answering);
    let connection = open.watch(connection);
    let serving = tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "A connection broke");
        }
    });
    place.served_by(serving.abort_handle());
}
