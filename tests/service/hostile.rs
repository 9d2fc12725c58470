//! Clients that mean harm: they send slowly, read nothing, and hold every connection that there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::support::open_files::allow_open_files;
use crate::support::{Answer, Scrape, TestDatabase, TestService, a_sale};

const SOCKETS: usize = 1_000;
/// Requests of the honest, in each part of the comparison.
const HONEST: usize = 1_500;
/// A slow machine is slow with and without an attack. What is below the floor is taken for the floor.
const SLOWER_MAX: u32 = 10;
const P99_FLOOR: Duration = Duration::from_millis(100);
/// Between two bytes of a client that trickles.
const TRICKLE: Duration = Duration::from_millis(500);

fn address(service: &TestService) -> String {
    service.base.trim_start_matches("http://").to_owned()
}

const SLOW_HEAD: &str = "GET /v1/hourly-sales HTTP/1.1\r\nhost: localhost\r\nx-slow: ";
const SLOW_BODY: &str = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
     content-length: 100000\r\n\r\n[";

/// Sends `begin`, and then a byte now and then, until the service has enough of it; answers what it said.
async fn trickle(mut stream: TcpStream, begin: &str) -> String {
    let (mut said, mut bytes) = (Vec::new(), [0; 1024]);
    if stream.write_all(begin.as_bytes()).await.is_err() {
        return String::new();
    }
    loop {
        tokio::select! {
            read = stream.read(&mut bytes) => match read {
                Ok(read @ 1..) => said.extend_from_slice(&bytes[..read]),
                Ok(0) | Err(_) => return String::from_utf8_lossy(&said).into_owned(),
            },
            () = tokio::time::sleep(TRICKLE) => {
                if stream.write_all(b"1").await.is_err() {
                    return String::from_utf8_lossy(&said).into_owned();
                }
            }
        }
    }
}

/// How often heads and bodies of trickling clients were cut off.
#[derive(Debug, Default)]
struct Cut {
    heads: AtomicUsize,
    bodies: AtomicUsize,
}

/// Clients that trickle heads and bodies, and come again as soon as they are cut off.
fn attack(address: &str, cut: &Arc<Cut>) -> JoinSet<()> {
    let mut attackers = JoinSet::new();
    for number in 0..SOCKETS {
        let (address, cut) = (address.to_owned(), Arc::clone(cut));
        attackers.spawn(async move {
            loop {
                let Ok(stream) = TcpStream::connect(&address).await else { continue };
                if number % 2 == 0 {
                    assert_eq!(trickle(stream, SLOW_HEAD).await, "");
                    cut.heads.fetch_add(1, Ordering::Relaxed);
                } else {
                    let said = trickle(stream, SLOW_BODY).await;
                    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
                    cut.bodies.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    attackers
}

#[expect(clippy::disallowed_methods, reason = "how long clients wait is what is measured")]
fn now() -> Instant {
    Instant::now()
}

/// Posts and reads as honest clients do, four at a time; answers how long 99 of 100 waited at most.
async fn p99_of_the_honest(service: &TestService, part: &str) -> Duration {
    let mut clients = JoinSet::new();
    for client in 0..4 {
        let (http, base, part) = (service.client.clone(), service.base.clone(), part.to_owned());
        clients.spawn(async move {
            let mut waits = Vec::new();
            for number in 0..HONEST / 4 {
                let request = if number % 2 == 0 {
                    let sale = a_sale(&format!("{part}-{client}-{number}"), "09:05:00", "1.00");
                    http.post(format!("{base}/v1/events")).json(&sale)
                } else {
                    http.get(format!("{base}/v1/hourly-sales"))
                };
                let begun = now();
                let answer = Answer::of(request).await;
                waits.push(begun.elapsed());
                assert_eq!(answer.status, 200, "{}", answer.body);
            }
            waits
        });
    }
    let mut waits = clients.join_all().await.concat();
    waits.sort();
    waits[waits.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_that_trickle_cost_the_others_little() {
    allow_open_files(4_096);
    let database = TestDatabase::create().await;
    let service = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_HEADER_TIMEOUT", "3 seconds"),
        ("TILLMARK_BODY_TIMEOUT", "3 seconds"),
    ])
    .await;
    p99_of_the_honest(&service, "warm").await;
    let alone = p99_of_the_honest(&service, "alone").await;

    let cut = Arc::new(Cut::default());
    let attackers = attack(&address(&service), &cut);
    let open = async || {
        let text = service.get("/metrics").await.body;
        Scrape::read(text.as_str().unwrap()).value(r#"tillmark_connections{state="open"}"#)
    };
    while open().await < SOCKETS as f64 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // What else the machine does hits some rounds; an attack that works hits every one.
    let mut attacked = Duration::MAX;
    // To the end of the deadlines, so that every attacker is cut off and comes again meanwhile.
    for round in 0.. {
        let part = format!("attacked-{round}");
        attacked = attacked.min(p99_of_the_honest(&service, &part).await);
        let cut = [&cut.heads, &cut.bodies].map(|count| count.load(Ordering::Relaxed));
        if cut.iter().all(|count| *count >= SOCKETS / 2) {
            break;
        }
    }
    println!(
        "99 of 100 waited at most {alone:?} alone, {attacked:?} beside {SOCKETS} that trickle"
    );
    assert!(
        attacked <= alone.max(P99_FLOOR) * SLOWER_MAX,
        "{attacked:?} beside the attack, {alone:?} without"
    );
    drop(attackers);
}

/// A client that asks for much and takes nothing of the answer.
async fn ask_and_read_nothing(address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let ask = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(60);
    stream.write_all(ask.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hold_every_connection_do_not_keep_the_others_out_for_longer_than_a_head_may_take()
 {
    const PLACES: usize = 8;
    let database = TestDatabase::create().await;
    // But for the deadline of heads, nothing would end a connection before the test has failed.
    let service = TestService::start_with(&[
        ("DATABASE_URL", &database.url),
        ("TILLMARK_CONNECTIONS_MAX", "8"),
        ("TILLMARK_HEADER_TIMEOUT", "1 second"),
        ("TILLMARK_BODY_TIMEOUT", "1 hour"),
        ("TILLMARK_REQUEST_TIMEOUT", "1 hour"),
    ])
    .await;
    let address = address(&service);
    let honest = || reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
    let ask = async || {
        let request = honest().get(service.url("/v1/hourly-sales"));
        assert_eq!(Answer::of(request).await.status, 200);
    };

    let mut tricklers = JoinSet::new();
    for _ in 0..PLACES {
        let stream = TcpStream::connect(&address).await.unwrap();
        tricklers.spawn(trickle(stream, SLOW_BODY));
    }
    ask().await;
    let ended = tricklers.join_next().await.unwrap().unwrap();
    assert_eq!(ended, "", "closed to make room, and not answered");
    drop(tricklers);

    let mut deaf = Vec::new();
    for _ in 0..2 * PLACES {
        deaf.push(ask_and_read_nothing(&address).await);
    }
    ask().await;
    drop(deaf);
    let log = service.log();
    assert!(log.is_empty() || !log.contains("ERROR"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_end_is_refused() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let mut stream = TcpStream::connect(address(&service)).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let sending = async {
        let mut sent = writing.write_all(b"GET /livez HTTP/1.1\r\nx-long: ").await;
        // Until nobody listens any more.
        while sent.is_ok() {
            sent = writing.write_all(&[b'x'; 4_096]).await;
        }
    };
    let mut said = Vec::new();
    let hearing = async { drop(reading.read_to_end(&mut said).await) };
    tokio::join!(sending, hearing);
    let said = String::from_utf8_lossy(&said);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431 "), "{said}");
    assert_eq!(service.get("/livez").await.status, 200);
}

/// What the service says to a head and a body; with `more`, that is sent again and again until it has enough.
async fn said_to(address: &str, begin: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let sending = async {
        let mut sent = writing.write_all(begin.as_bytes()).await;
        while sent.is_ok() && !more.is_empty() {
            sent = writing.write_all(more.as_bytes()).await;
        }
    };
    let mut said = Vec::new();
    let hearing = async {
        // What is still being sent when the service closes may break the connection behind the answer.
        drop(reading.read_to_end(&mut said).await);
    };
    tokio::join!(sending, hearing);
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_refused_however_it_is_sent() {
    let database = TestDatabase::create().await;
    let settings = [("DATABASE_URL", &*database.url), ("TILLMARK_BODY_BYTES_MAX", "1024")];
    let service = TestService::start_with(&settings).await;
    let (spaces, chunk) = (" ".repeat(1_025), format!("400\r\n{}\r\n", " ".repeat(1_024)));
    for (case, headers, body, more) in [
        ("announced", "content-length: 1025", &*spaces, ""),
        ("announced, and consent awaited", "content-length: 1025\r\nexpect: 100-continue", "", ""),
        ("in chunks", "transfer-encoding: chunked", &format!("{chunk}1\r\n \r\n0\r\n\r\n"), ""),
        ("in chunks without end", "transfer-encoding: chunked", &chunk, &chunk),
    ] {
        let head = format!(
            "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\n{headers}\r\n\r\n"
        );
        let said = said_to(&address(&service), &(head + body), more).await;
        // Who never stops sending may not get to hear it.
        let is_told =
            said.starts_with("HTTP/1.1 413 ") && said.contains("has more than 1024 bytes");
        assert!(is_told || (said.is_empty() && !more.is_empty()), "{case}: {said}");
    }
    assert_eq!(database.number("select count(*) from raw_events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tills_that_come_back_all_at_once_find_room() {
    const TILLS: usize = 600;
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    allow_open_files(2_000);
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
    let tills = TILLS.min(allowed.map_or(128, |text| text.trim().parse().unwrap()));
    // Nobody accepts: who finds no room would try again after a second.
    service.freeze();
    let address = &*address(&service);
    let connected = (0..tills).map(async |_| {
        tokio::time::timeout(Duration::from_millis(900), TcpStream::connect(address)).await
    });
    let connected = futures_util::future::join_all(connected).await;
    service.wake();
    let refused = connected.iter().filter(|outcome| !matches!(outcome, Ok(Ok(_)))).count();
    assert_eq!(refused, 0, "of {tills}");
    assert_eq!(service.get("/livez").await.status, 200);
}
