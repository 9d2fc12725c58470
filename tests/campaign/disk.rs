//! A small disk that gets full.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use tempfile::TempDir;

use crate::bed::{Bed, wait_until};
use crate::tills::Kind;

/// A fresh cluster needs about a fifth of it.
const OPTIONS: &str = "size=256m,mode=0700";
/// So many refusals show that the disk is full indeed.
const REFUSALS: u32 = 20;

/// A file system in memory, taken down again when dropped.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// An error says why there is none.
    fn mount() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", OPTIONS, "tmpfs"]).arg(folder.path());
        let output = command.output().map_err(|error| format!("mount: {error}"))?;
        if output.status.success() {
            return Ok(Self { folder });
        }
        Err(String::from_utf8_lossy(&output.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "))
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Takes up all the room that is left.
    fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is left mounted", self.path().display());
        }
    }
}

/// The disk of Postgres is full, first for its tables and then for its log, and has room again. Answers
/// how many events were answered; an error says why there could be no such disk.
pub async fn fill_up(rng: Rng) -> Result<usize, String> {
    let disk = SmallDisk::mount()?;
    let kinds = [Kind::Single, Kind::Bulk, Kind::Odd];
    let mut bed = Bed::make_in(disk.path(), &kinds, rng).await;
    bed.post_for(100, 400).await;
    bed.check("a start on a small disk").await;
    disk.fill();
    wait_for_refusals(&bed).await;
    // A new file of its log is what Postgres cannot do without.
    let _ = sqlx::query("select pg_switch_wal()").execute(&bed.database.pool).await;
    wait_for_refusals(&bed).await;
    bed.post_for(200, 1_000).await;
    disk.free();
    bed.wait_for_postgres().await;
    bed.post_for(100, 400).await;
    bed.check("a full disk").await;
    let answered = bed.tills.answers().stored.len();
    drop(bed);
    Ok(answered)
}

async fn wait_for_refusals(bed: &Bed) {
    let refused = || bed.tills.answers().refused;
    let before = refused();
    let are_many = async || refused() >= before + REFUSALS;
    wait_until("posts are refused because the disk is full", are_many).await;
}
