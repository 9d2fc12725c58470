//! The deliberately broken commits, with the feature `defects` only: `tests/defects` shows that the
//! proofs notice them.

use sqlx::{Postgres, Transaction};

use super::error::Doing;
use super::{Database, DatabaseError};
use crate::domain::Defect;
use crate::engine::{Outcome, Watermarks};

impl Database {
    /// What a commit keeps of a query's progress, wrong as the defect has it.
    pub(super) fn defective_outcome(&self, outcome: &Outcome) -> Outcome {
        let mut kept = outcome.clone();
        if self.defect == Some(Defect::WatermarkInMemory) {
            kept.watermarks = Watermarks::EPOCH;
        }
        kept
    }

    /// The transaction for rows and state, after the position was moved in `transaction`; another
    /// one where the defect has it so.
    pub(super) async fn defective_transaction(
        &self,
        transaction: Transaction<'static, Postgres>,
    ) -> Result<Transaction<'static, Postgres>, DatabaseError> {
        if self.defect != Some(Defect::PositionApart) {
            return Ok(transaction);
        }
        transaction.commit().await.doing("commit a position apart")?;
        self.engine.begin().await.doing("begin the rest of a batch")
    }
}
