//! Finds the server programs: `postgres` and `initdb` of one version, in one folder.

use std::collections::BTreeMap;
use std::env::split_paths;
use std::fs::read_dir;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{EmbeddedError, EmbeddedSettings};

/// The oldest major version that is served.
const MAJOR_VERSION_MIN: u32 = 15;

/// Parent folders of the packages' folders, the prefix of the version's folder, and what follows it.
const USUAL_FOLDERS: [(&str, &str, &str); 4] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
];

/// Server programs that were tried and work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    folder: PathBuf,
    major: u32,
}

impl Programs {
    /// The programs in `pg_bin_dir` if set, else the newest found. Data that exists already is only read by the major
    /// version that made it, so then that version is taken, newer ones or not.
    pub(super) fn find(
        settings: &EmbeddedSettings,
        data_major: Option<(u32, &Path)>,
    ) -> Result<Self, EmbeddedError> {
        let found: Vec<Self> = match &settings.pg_bin_dir {
            Some(folder) => {
                let named = Self::probe(folder);
                vec![named.ok_or_else(|| EmbeddedError::NotPrograms { folder: folder.clone() })?]
            }
            None => candidates(settings).iter().filter_map(|folder| Self::probe(folder)).collect(),
        };
        choose(found, data_major)
    }

    /// The folder of the programs.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of one program.
    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// Asks the programs in `folder` for their version; `None` if they are not both there or do not answer.
    fn probe(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        if !folder.join("initdb").is_file() {
            return None;
        }
        let major = major_of_version_text(&output_of(&folder.join("postgres"), "--version")?)?;
        Some(Self { folder, major })
    }
}

/// Every folder that may hold server programs, in the order of preference within one version.
fn candidates(settings: &EmbeddedSettings) -> Vec<PathBuf> {
    let pg_config =
        output_of(Path::new("pg_config"), "--bindir").map(|text| PathBuf::from(text.trim()));
    let usual = USUAL_FOLDERS
        .iter()
        .flat_map(|(parent, prefix, rest)| versions_in(Path::new(parent), prefix, rest));
    let searched =
        settings.search_path.iter().flat_map(split_paths).filter(|folder| folder.is_absolute());

    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in pg_config.into_iter().chain(usual).chain(searched) {
        if folder.join("postgres").is_file() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// `<parent>/<prefix>…/<rest>` for every entry of `parent` that begins with `prefix`.
fn versions_in(parent: &Path, prefix: &str, rest: &str) -> Vec<PathBuf> {
    let Ok(entries) = read_dir(parent) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join(rest))
        .collect()
}

fn choose(
    found: Vec<Programs>,
    data_major: Option<(u32, &Path)>,
) -> Result<Programs, EmbeddedError> {
    // The first of each version stays: it was preferred.
    let mut by_major: BTreeMap<u32, Programs> = BTreeMap::new();
    for programs in found {
        by_major.entry(programs.major).or_insert(programs);
    }
    if let Some((data_major, data_dir)) = data_major
        && !by_major.is_empty()
    {
        let majors: Vec<String> = by_major.keys().map(ToString::to_string).collect();
        return by_major.remove(&data_major).ok_or_else(|| EmbeddedError::OtherMajorVersion {
            data_dir: data_dir.to_owned(),
            data_major,
            found: majors.join(", "),
        });
    }
    let (major, newest) = by_major.pop_last().ok_or(EmbeddedError::NoPrograms)?;
    if major < MAJOR_VERSION_MIN {
        return Err(EmbeddedError::ProgramsTooOld { major, folder: newest.folder });
    }
    Ok(newest)
}

/// What `program` prints, if it can be run and succeeds.
fn output_of(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

/// `15` of `postgres (PostgreSQL) 15.14 (Debian …)`; also of `15beta1`.
fn major_of_version_text(text: &str) -> Option<u32> {
    let version = text.trim().strip_prefix("postgres (PostgreSQL) ")?;
    let digits = version.bytes().take_while(u8::is_ascii_digit).count();
    version.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(major: u32, folder: &str) -> Programs {
        Programs { folder: PathBuf::from(folder), major }
    }

    #[test]
    fn the_major_version_is_read_from_what_the_server_prints() {
        for (text, major) in [
            ("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 17.2", Some(17)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("postgres (PostgreSQL) devel", None),
            ("something else 15.1", None),
        ] {
            assert_eq!(major_of_version_text(text), major, "{text}");
        }
    }

    #[test]
    fn new_data_gets_the_newest_programs() {
        let found =
            vec![programs(16, "/a"), programs(17, "/b"), programs(17, "/c"), programs(15, "/d")];
        assert_eq!(choose(found, None).unwrap(), programs(17, "/b"));
    }

    #[test]
    fn existing_data_keeps_the_version_that_made_it() {
        let found = vec![programs(15, "/a"), programs(17, "/b")];
        assert_eq!(choose(found, Some((15, Path::new("/data")))).unwrap(), programs(15, "/a"));
    }

    #[test]
    fn data_of_another_major_version_is_refused_with_both_versions() {
        let found = vec![programs(16, "/a"), programs(17, "/b")];
        let error = choose(found, Some((15, Path::new("/data")))).unwrap_err().to_string();
        assert!(error.contains("/data was made by PostgreSQL 15"), "{error}");
        assert!(error.contains("version 16, 17"), "{error}");
    }

    #[test]
    fn programs_before_version_15_are_refused() {
        let error = choose(vec![programs(14, "/a")], None).unwrap_err();
        assert!(matches!(error, EmbeddedError::ProgramsTooOld { major: 14, .. }), "{error}");
        assert!(matches!(choose(Vec::new(), None), Err(EmbeddedError::NoPrograms)));
    }

    #[test]
    fn a_named_folder_without_programs_is_refused_by_name() {
        let empty = tempfile::tempdir().unwrap();
        let settings = EmbeddedSettings {
            pg_bin_dir: Some(empty.path().to_owned()),
            ..EmbeddedSettings::default()
        };
        let error = Programs::find(&settings, None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("PG_BIN_DIR is {}", empty.path().display())), "{error}");
    }
}
