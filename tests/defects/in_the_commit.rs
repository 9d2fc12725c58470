//! Mistakes in what a commit holds, against the run of which every call to the database fails once.

use tillmark::database::Database;
use tillmark::domain::Defect;

use crate::support::faulted_log::{hours, rule, stages};
use crate::support::faulted_store::Proof;
use crate::support::{Fault, FaultedStore};

async fn prove(prepare: fn(Database) -> Database) -> Result<Proof, String> {
    let store = FaultedStore::with_log(&stages()).await.prepared_by(prepare);
    store.prove(&rule(&hours(), "append"), Fault::NotApplied).await
}

fn assert_noticed(proof: Result<Proof, String>) {
    let disagreement = proof.expect_err("no fault shows the defect");
    println!("{disagreement}");
    assert!(disagreement.starts_with("call "), "found without a fault: {disagreement}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_defect_every_call_may_fail() {
    assert!(prove(|database| database).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_committed_apart_from_rows_and_state_is_noticed() {
    let defective = |mut database: Database| {
        database.defect = Some(Defect::PositionApart);
        database
    };
    assert_noticed(prove(defective).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watermark_kept_in_memory_only_is_noticed() {
    let defective = |mut database: Database| {
        database.defect = Some(Defect::WatermarkInMemory);
        database
    };
    // The reconciliation sees it even without a fault: it holds what is open against the stored watermark.
    println!("{}", prove(defective).await.expect_err("nothing shows the defect"));
}
