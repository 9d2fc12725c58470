//! What the rest of the service may ask of the loop.

use crate::database::{CommittedProgress, DatabaseError};
use crate::domain::QueryName;

/// Why a run of a query did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no query of this name.
    #[error("there is no query `{0}`")]
    NoSuchQuery(QueryName),
    /// The query is paused.
    #[error("the query is paused")]
    Paused,
    /// The service is stopping.
    #[error("the service is stopping")]
    Stopping,
    /// A batch failed; the query has its error and tries again by itself.
    #[error("a micro-batch of the query failed")]
    Failed(#[source] DatabaseError),
}

/// The way to the runners. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pipeline {}

impl Pipeline {
    /// Runs everything that is available to the query now, the batch without data included, or
    /// `batches_max` batches, and returns their progress entries. Runs of one query take turns.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        &self,
        _name: &QueryName,
        _batches_max: Option<u32>,
    ) -> Result<Vec<CommittedProgress>, RunError> {
        std::future::pending().await
    }

    /// Makes the runners match the table of queries, after a change to it.
    ///
    /// # Errors
    /// [`DatabaseError::Failed`]; the runners are matched again soon in any case.
    pub async fn sync(&self) -> Result<(), DatabaseError> {
        std::future::pending().await
    }
}
