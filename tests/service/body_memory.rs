//! What a body costs in memory, by the most that the process ever had (Linux tells).
#![cfg(target_os = "linux")]

use crate::support::{Answer, TestDatabase, TestService, a_sale, gzip};

const BODY_BYTES_MAX: usize = 10 << 20;
const JSON: &str = "application/json";

/// The most memory that the service has had since it was last told to forget.
fn peak_bytes(service: &TestService) -> usize {
    let path = format!("/proc/{}/status", service.process_id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

fn forget_peak(service: &TestService) {
    std::fs::write(format!("/proc/{}/clear_refs", service.process_id()), "5").unwrap();
}

/// A service of its own for each post, so that none finds room that another left.
async fn cost_of(post: impl AsyncFnOnce(&TestService) -> Answer) -> (u16, usize) {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    forget_peak(&service);
    let before = peak_bytes(&service);
    let answer = post(&service).await;
    (answer.status, peak_bytes(&service) - before)
}

/// A list of 10,000 items, the last of which is no event.
fn list(item: impl Fn(usize) -> String) -> String {
    let items: String = (0..9_999).map(|number| item(number) + ",").collect();
    format!("[{items}{{}}]")
}

/// A sale with twenty attributes, nearly a kibibyte.
fn large_sale(number: usize) -> String {
    let attributes: Vec<String> =
        (0..20).map(|number| format!("\"attribute-{number}\":\"{}\"", "x".repeat(23))).collect();
    let sale = a_sale(&number.to_string(), "09:05:00", "20.00").to_string();
    sale.replacen('{', &format!("{{\"attributes\":{{{}}},", attributes.join(",")), 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_10_mib_costs_no_more_than_a_few_times_its_size() {
    let hostile = format!("{{{}}}", vec!["\"a\":1"; 170].join(","));
    for (case, body, times_max) in [
        ("large events", list(large_sale), 5),
        ("a fault in every member", list(|_| hostile.clone()), 5),
        ("the smallest items", list(|_| "1".to_owned()), 1),
    ] {
        assert!(body.len() <= BODY_BYTES_MAX, "{case}: {}", body.len());
        // Of an atomic post with a bad item nothing goes to the database: this is the body alone.
        let path = "/v1/events?atomic=true";
        let bytes = body.len();
        let (status, cost) =
            cost_of(async |service| service.post_text(path, JSON, body).await).await;
        println!("{case}: a body of {bytes} bytes costs {cost}");
        assert_eq!(status, 422, "{case}");
        assert!(cost < times_max * BODY_BYTES_MAX, "{case}: {bytes} bytes cost {cost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_costs_the_limit_and_no_more() {
    let spaces = vec![b' '; 64 << 20];
    let zstd = zstd::encode_all(&spaces[..], 3).unwrap();
    for (encoding, bomb) in [("gzip", gzip(&spaces)), ("zstd", zstd)] {
        let post =
            async |service: &TestService| service.post_compressed(JSON, encoding, bomb).await;
        let (status, cost) = cost_of(post).await;
        println!("{encoding}: a bomb of 64 MiB costs {cost}");
        assert_eq!(status, 413);
        assert!(cost < 2 * BODY_BYTES_MAX, "{encoding}: {cost}");
    }
}
