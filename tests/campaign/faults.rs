//! The faults, each followed by a look of the oracle.

use crate::bed::{Bed, WAIT_MAX, wait_until};
use crate::support::TestService;
use crate::support::fault_proxy::{Fault, FaultProxy};

/// What `abort` ends a process with.
const SIGABRT: &str = "signal: 6 ";
/// Statements that commit: the others are inside a transaction that one of these ends.
const COMMITS: [&str; 4] = [
    "COMMIT",
    "select * from append_events(",
    "select pg_logical_emit_message(",
    "select * from commit_batch(",
];

/// The service dies at a named point, one of the first times that it comes there.
pub async fn die_at(bed: &mut Bed, point: &str) {
    bed.kill().await;
    // What is done once in a start is done once.
    let is_once = point.starts_with("recovery.") && !point.ends_with("_read");
    let passage = if is_once { 1 } else { bed.rng.u32(1..=3) };
    let plan = format!("{point}:{passage}");
    let ended = match bed.launch(&[("TILLMARK_FAULT", &plan)]).await {
        Err(ended) => ended,
        Ok(mut victim) => {
            bed.tills.post_to(&[&victim.base]);
            let ended = tokio::time::timeout(WAIT_MAX, victim.end()).await;
            ended.unwrap_or_else(|_| panic!("the service did not come to {plan}")).to_string()
        }
    };
    assert!(ended.contains(SIGABRT), "it did not die at {plan}: {ended}");
    bed.start().await;
    bed.check(&plan).await;
}

/// kill -9 at any moment.
pub async fn die_at_random(bed: &mut Bed) {
    bed.post_for(5, 400).await;
    bed.kill().await;
    bed.start().await;
    bed.check("a kill at random").await;
}

/// Postgres stops at once, and the service recovers by itself.
pub async fn stop_postgres(bed: &mut Bed) {
    bed.post_for(20, 400).await;
    bed.stop_postgres().await;
    bed.post_for(20, 400).await;
    bed.wait_for_postgres().await;
    bed.check("an immediate stop of Postgres").await;
}

/// Some of the service's sessions are ended, those that do something if there are any.
pub async fn kill_backends(bed: &mut Bed) {
    for _ in 0..5 {
        bed.post_for(5, 80).await;
        let victims = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where application_name like 'tillmark%' and datname = current_database()
             order by state = 'idle', hashint4(pid + {}) limit {}",
            bed.rng.u16(..),
            bed.rng.u32(1..6),
        );
        bed.database.execute(&victims).await;
    }
    bed.check("sessions that were ended").await;
}

/// A commit is done, and nobody is told. Says what it was, each time.
pub async fn lose_replies(bed: &mut Bed, mut lost: impl FnMut(&str)) {
    let proxy = FaultProxy::start(&bed.database.url);
    bed.kill().await;
    bed.start_with(&[("DATABASE_URL", &proxy.url)]).await;
    for statement in COMMITS.into_iter().cycle().take(2 * COMMITS.len()) {
        let nth = bed.rng.u32(1..=3);
        proxy.count_those(Some((nth, Fault::AppliedButReportedFailed)), statement);
        let what = format!("there is a call {nth} that begins `{statement}`");
        wait_until(&what, async || proxy.has_failed()).await;
        bed.check(&format!("a lost reply to `{statement}`")).await;
        lost(statement);
    }
    bed.kill().await;
    bed.start().await;
}

/// The replica that leads stands still for longer than its lease, and wakes up.
pub async fn freeze_the_leader(bed: &mut Bed) {
    let mut other = bed.launch(&[]).await.unwrap();
    other.wait_until_ready().await;
    bed.tills.post_to(&[&bed.service().base, &other.base]);
    bed.post_for(50, 300).await;
    wait_until("one of the two leads", async || leads(bed.service()).await != leads(&other).await)
        .await;
    if leads(&other).await {
        std::mem::swap(bed.service.as_mut().unwrap(), &mut other);
    }
    let leader = bed.service.replace(other).expect("a service runs");
    leader.freeze();
    bed.post_for(3_000, 5_000).await;
    bed.check("a leader was frozen").await;
    leader.wake();
    bed.post_for(200, 1_000).await;
    bed.check("the frozen leader woke up").await;
    // The one that was frozen goes on alone.
    bed.kill().await;
    bed.tills.post_to(&[&leader.base]);
    bed.service = Some(leader);
    bed.check("the other replica was killed").await;
}

async fn leads(service: &TestService) -> bool {
    let metrics = service.get("/metrics").await.body;
    metrics.as_str().unwrap().contains("\ntillmark_leads 1\n")
}
