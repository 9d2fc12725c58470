//! A way to Postgres over TCP that can be held up and cut.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::TestDatabase;

/// The socket of the server of `database`, and its address for clients that come by `listener`.
pub fn way_to(database: &TestDatabase, listener: &TcpListener) -> (String, String) {
    let part = |name: &str| {
        let (_, rest) = database.url.split_once(name).unwrap();
        rest.split(['?', '&']).next().unwrap()
    };
    let socket = format!("{}/.s.PGSQL.{}", part("host="), part("port="));
    let address = listener.local_addr().unwrap();
    (socket, format!("postgres://{}@{address}/{}", part("user="), part("postgres:///")))
}

/// Carries connections on to the server's socket. While `open` is false nothing passes, either way,
/// and nobody is told; aborted, it cuts them all.
pub fn carry(listener: TcpListener, socket: String, open: watch::Receiver<bool>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut carried = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let (socket, open) = (socket.clone(), open.clone());
            carried.spawn(async move {
                let server = UnixStream::connect(socket).await.unwrap();
                let ((client_in, client_out), (server_in, server_out)) =
                    (client.into_split(), server.into_split());
                tokio::join!(
                    pump(client_in, server_out, open.clone()),
                    pump(server_in, client_out, open)
                );
            });
        }
    })
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut open: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        if open.wait_for(|open| *open).await.is_err()
            || read == 0
            || to.write_all(&bytes[..read]).await.is_err()
        {
            let _ = to.shutdown().await;
            return;
        }
    }
}
