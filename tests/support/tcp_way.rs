//! A way to Postgres over TCP that can be held up and cut.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::TestDatabase;

/// The way to a server's socket.
pub struct TcpWay {
    /// The database's address for those who come this way.
    pub url: String,
    socket: String,
    open: watch::Sender<Open>,
    carrying: JoinHandle<()>,
}

/// Who gets through.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_open: bool,
    /// Connections of earlier times get nothing through.
    times: u32,
}

impl Open {
    fn lets(self, times: u32) -> bool {
        self.is_open && times == self.times
    }
}

impl TcpWay {
    pub async fn to(database: &TestDatabase) -> Self {
        let part = |name: &str| {
            let (_, rest) = database.url.split_once(name).unwrap();
            rest.split(['?', '&']).next().unwrap()
        };
        let socket = format!("{}/.s.PGSQL.{}", part("host="), part("port="));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("postgres://{}@{address}/{}", part("user="), part("postgres:///"));
        let open = watch::Sender::new(Open { is_open: true, times: 0 });
        let carrying = carry(listener, socket.clone(), open.subscribe());
        Self { url, socket, open, carrying }
    }

    /// From now on nothing passes, either way, and nobody is told.
    pub fn hold(&self) {
        self.open.send_modify(|open| open.is_open = false);
    }

    /// Lets everything pass again, also what was held up.
    pub fn let_pass(&self) {
        self.open.send_modify(|open| open.is_open = true);
    }

    /// From now on nothing passes on the connections that there are, and nobody is told; new ones are as
    /// good as ever. So it is when another server takes an address over.
    pub fn strand(&self) {
        self.open.send_modify(|open| open.times += 1);
    }

    /// Cuts all connections, and takes no more.
    pub async fn cut(&mut self) {
        self.carrying.abort();
        assert!((&mut self.carrying).await.is_err_and(|error| error.is_cancelled()));
    }

    /// Takes connections where the way began, once it is cut, and says nothing.
    pub async fn silence(&self) -> TcpListener {
        let (_, rest) = self.url.split_once('@').unwrap();
        TcpListener::bind(rest.split('/').next().unwrap()).await.unwrap()
    }

    /// Carries on those who come there.
    pub fn carry(&mut self, listener: TcpListener) {
        self.carrying = carry(listener, self.socket.clone(), self.open.subscribe());
    }
}

fn carry(listener: TcpListener, socket: String, open: watch::Receiver<Open>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut carried = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let (socket, open) = (socket.clone(), open.clone());
            let times = open.borrow().times;
            carried.spawn(async move {
                let server = UnixStream::connect(socket).await.unwrap();
                let ((client_in, client_out), (server_in, server_out)) =
                    (client.into_split(), server.into_split());
                tokio::join!(
                    pump(client_in, server_out, (open.clone(), times)),
                    pump(server_in, client_out, (open, times))
                );
            });
        }
    })
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    (mut open, times): (watch::Receiver<Open>, u32),
) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        if open.wait_for(|open| open.lets(times)).await.is_err()
            || read == 0
            || to.write_all(&bytes[..read]).await.is_err()
        {
            let _ = to.shutdown().await;
            return;
        }
    }
}
