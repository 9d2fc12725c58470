//! `tillmark import`: files of events → the raw log, with the checks of the API and without it.
//!
//! Invariants:
//! * A row passes the very check that a posted event passes, and is stored by the same statements.
//! * Memory does not grow with a file: one chunk is stored while the next is read.
//! * Nothing is counted twice, however often an import runs or is killed: rows that were stored
//!   before are duplicates.
//! * Every row that was not taken is in a file, with its line and the reasons.

mod chunk;
mod error;
mod file;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod lines;
mod progress;
mod rejected;
mod rows;
mod store;
mod summary;
mod table;

pub use error::ImportError;

use std::io::Read;
use std::path::PathBuf;
use std::pin::Pin;

use tokio::sync::mpsc;

use crate::app::{NoData, StartError, asked_to_end, on_database};
use crate::clock::Stopwatch;
use crate::config::ImportSettings;
use crate::database::{AppendMemory, Database, FutureGuard, PoolSizes};
use crate::intake::EventDefaults;
use crate::telemetry::{self, LogFormat};
use chunk::{CheckedChunk, Chunk};
use file::Input;
use progress::Progress;
use rejected::RejectedFile;
use rows::Rows;
use store::Store;
use summary::{Counts, Summary};

const POOL_SIZES: PoolSizes = PoolSizes { ingest: 1, engine: 1, reads: 1 };
/// Chunks that are read ahead.
const CHUNKS_AHEAD: usize = 1;

/// How an import that read everything, or was asked to end, came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imported {
    /// Every row is in the database, since now or before.
    All,
    /// Some rows were rejected or in conflict (`EX_DATAERR`).
    NotAll,
    /// Somebody ended it; running it again goes on (`EX_TEMPFAIL`).
    Interrupted,
}

impl Imported {
    /// What the process answers.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::All => 0,
            Self::NotAll => 65,
            Self::Interrupted => 75,
        }
    }
}

type Chunks = mpsc::Receiver<Result<CheckedChunk, ImportError>>;

/// Imports the files that `settings` name, and prints a summary whatever happens on the way.
///
/// # Errors
/// [`ImportError`] says why not everything was read; what was stored before stays.
pub fn run(settings: &ImportSettings) -> Result<Imported, ImportError> {
    telemetry::start(&settings.log, LogFormat::Text);
    let inputs = inputs(settings)?;
    on_database(&settings.database, NoData::Refuse, async |url| {
        import(settings, &inputs, url).await
    })
}

/// The inputs, each looked at before anything of the first is stored.
fn inputs(settings: &ImportSettings) -> Result<Vec<Input>, ImportError> {
    let named = settings.files.iter().map(|name| Input::named(name, settings.format));
    let inputs = named.collect::<Result<Vec<_>, _>>()?;
    if inputs.iter().filter(|input| input.is_standard_input()).count() > 1 {
        return Err(ImportError::StandardInputTwice);
    }
    for input in &inputs {
        let rejected = rejected_file(settings, input);
        if inputs.iter().filter_map(Input::path).any(|path| file::are_same(path, &rejected)) {
            return Err(ImportError::RejectedIsInput { file: rejected });
        }
        if input.is_regular_file() || input.path().is_some_and(|path| !path.exists()) {
            Rows::of(input, input.open()?.bytes, row_bytes_max(settings))?;
        }
    }
    Ok(inputs)
}

fn rejected_file(settings: &ImportSettings, input: &Input) -> PathBuf {
    settings.rejected.clone().unwrap_or_else(|| input.rejected_file())
}

fn row_bytes_max(settings: &ImportSettings) -> usize {
    usize::try_from(settings.event_bytes_max).unwrap_or(usize::MAX)
}

async fn import(
    settings: &ImportSettings,
    inputs: &[Input],
    url: &str,
) -> Result<Imported, ImportError> {
    let mut ask_to_end: AskToEnd = Box::pin(asked_to_end()?);
    let wait_max = settings.database.database_wait;
    let database = Database::start(url, POOL_SIZES, wait_max).await?;
    let guard = FutureGuard { skew_max: settings.max_future_skew.0 };
    let mut store = Store { database, guard, memory: AppendMemory::default(), wait_max };
    let (since, mut counts) = (Stopwatch::start(), Counts::default());
    let ended = import_all(settings, inputs, &mut store, &mut counts, &mut ask_to_end).await;
    println!("{}", Summary::of(counts, since));
    match ended? {
        Ended::Asked => {
            eprintln!("tillmark: interrupted; run the import again to go on");
            Ok(Imported::Interrupted)
        }
        Ended::AtEnd if counts.is_clean() => Ok(Imported::All),
        Ended::AtEnd => Ok(Imported::NotAll),
    }
}

type AskToEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why no more is read of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    AtEnd,
    Asked,
}

async fn import_all(
    settings: &ImportSettings,
    inputs: &[Input],
    store: &mut Store,
    counts: &mut Counts,
    ask_to_end: &mut AskToEnd,
) -> Result<Ended, ImportError> {
    let mut rejected: Option<RejectedFile> = None;
    for input in inputs {
        let path = rejected_file(settings, input);
        let rejected = match &mut rejected {
            Some(same) if same.path() == path => same,
            other => other.insert(RejectedFile::at(path)?),
        };
        let before = *counts;
        let ended = import_one(settings, input, store, (counts, rejected), ask_to_end).await;
        if counts.rejected > before.rejected || counts.conflicts > before.conflicts {
            eprintln!("{input}: rows that were not taken are in {}", rejected.path().display());
        }
        if ended? == Ended::Asked {
            return Ok(Ended::Asked);
        }
    }
    Ok(Ended::AtEnd)
}

async fn import_one(
    settings: &ImportSettings,
    input: &Input,
    store: &mut Store,
    (counts, rejected): (&mut Counts, &mut RejectedFile),
    ask_to_end: &mut AskToEnd,
) -> Result<Ended, ImportError> {
    let open = input.open()?;
    let name = input.to_string();
    let mut progress = Progress::of(name.clone(), open.bytes_read, open.bytes_total);
    let mut chunks = read_ahead(settings, input.clone(), open.bytes)?;
    let mut rows = 0;
    let ended = loop {
        let chunk = tokio::select! {
            biased;
            () = &mut *ask_to_end => break Ok(Ended::Asked),
            chunk = chunks.recv() => chunk,
        };
        let Some(chunk) = chunk else { break Ok(Ended::AtEnd) };
        let taken = match chunk {
            Ok(mut chunk) => store.take(&name, &mut chunk, rejected).await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(taken) => {
                *counts += taken;
                rows += taken.read;
                progress.show(rows);
            }
            Err(error) => break Err(error),
        }
    };
    progress.end();
    ended
}

/// Reads and checks on a thread of its own, which ends when nobody wants more.
fn read_ahead(
    settings: &ImportSettings,
    input: Input,
    bytes: Box<dyn Read + Send>,
) -> Result<Chunks, ImportError> {
    let (send, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let defaults = EventDefaults { currency: settings.currency };
    let bytes_max = row_bytes_max(settings);
    let read = move || {
        let mut rows = match Rows::of(&input, bytes, bytes_max) {
            Ok(rows) => rows,
            Err(error) => return drop(send.blocking_send(Err(error))),
        };
        loop {
            let mut chunk = Chunk::default();
            let filled = rows.fill(&mut chunk);
            // The channel is closed when the import has ended.
            if !chunk.is_empty() && send.blocking_send(chunk.check(&defaults, bytes_max)).is_err() {
                return;
            }
            match filled {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return drop(send.blocking_send(Err(error))),
            }
        }
    };
    let thread = std::thread::Builder::new().name("import-reader".to_owned()).spawn(read);
    thread.map_err(|source| StartError::System { doing: "start the reader's thread", source })?;
    Ok(chunks)
}
