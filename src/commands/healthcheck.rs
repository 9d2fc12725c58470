//! `tillmark healthcheck`: whether the service on this machine is ready, for containers without a shell.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(3);
const READY: &[u8; 13] = b"HTTP/1.1 200 ";
const NOT_READY: u8 = 1;

/// Asks the service that listens on `listen`. Answers 0 when it is ready, else 1.
pub(super) fn run(listen: SocketAddr) -> u8 {
    match is_ready(listen) {
        Ok(true) => 0,
        Ok(false) => {
            eprintln!("tillmark: {listen} is not ready");
            NOT_READY
        }
        Err(error) => {
            eprintln!("tillmark: {listen} does not answer: {error}");
            NOT_READY
        }
    }
}

fn is_ready(listen: SocketAddr) -> io::Result<bool> {
    let address = SocketAddr::new(reachable(listen.ip()), listen.port());
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut status = [0; READY.len()];
    stream.read_exact(&mut status)?;
    Ok(status == *READY)
}

/// A service that listens everywhere is reached by the loopback.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}
