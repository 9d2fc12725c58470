//! The user under which the server runs: ourselves, or, since Postgres refuses to run as root, another one.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::EmbeddedError;

/// The user that runs the server and owns its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    uid: u32,
    gid: u32,
    name: String,
    /// We are root and become this user for every server program.
    switches: bool,
}

impl Owner {
    /// Ourselves; as root the user `postgres`, else `nobody`.
    pub(super) fn of_server() -> Result<Self, EmbeddedError> {
        let uid = rustix::process::geteuid();
        if !uid.is_root() {
            let gid = rustix::process::getegid().as_raw();
            let name = format!("with id {}", uid.as_raw());
            return Ok(Self { uid: uid.as_raw(), gid, name, switches: false });
        }
        ["postgres", "nobody"].into_iter().find_map(Self::named).ok_or(EmbeddedError::NoServerUser)
    }

    /// Asks `id`, which also knows users that are not in `/etc/passwd`.
    fn named(name: &str) -> Option<Self> {
        let id = |flag| {
            let output =
                Command::new("id").args([flag, name]).stderr(Stdio::null()).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse::<u32>().ok()
        };
        Some(Self { uid: id("-u")?, gid: id("-g")?, name: name.to_owned(), switches: true })
    }

    /// Where the data goes unless set.
    pub(super) fn default_data_dir(&self) -> &'static Path {
        Path::new(if self.switches { "/var/lib/tillmark" } else { "./tillmark-data" })
    }

    /// The user's id.
    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// The user as an error names it.
    pub(super) fn description(&self) -> String {
        if self.switches {
            format!("{} ({})", self.name, self.uid)
        } else {
            format!("user id {}", self.uid)
        }
    }

    /// Makes `command` run as this user. As root this also clears the supplementary groups (std does so with the uid).
    pub(super) fn run(&self, command: &mut Command) {
        if self.switches {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Hands a file or folder of ours to this user.
    pub(super) fn give(&self, path: &Path) -> Result<(), EmbeddedError> {
        if !self.switches {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid))
            .map_err(EmbeddedError::io("change the owner of", path))
    }

    /// Checks that every existing folder above `target` may be entered. The system would only say "permission denied",
    /// and of the wrong folder.
    pub(super) fn require_reachable(&self, target: &Path) -> Result<(), EmbeddedError> {
        if !self.switches {
            return Ok(());
        }
        let blocked = target
            .ancestors()
            .skip(1)
            .find(|folder| folder.metadata().is_ok_and(|metadata| !self.may_enter(&metadata)));
        match blocked {
            None => Ok(()),
            Some(folder) => Err(EmbeddedError::Unreachable {
                target: target.to_owned(),
                blocked: folder.to_owned(),
                user: self.name.clone(),
            }),
        }
    }

    fn may_enter(&self, folder: &Metadata) -> bool {
        let bit = match (folder.uid() == self.uid, folder.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        folder.mode() & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_is_entered_with_the_bit_of_the_first_class_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = folder.path().metadata().unwrap();
        let (own_uid, own_gid) = (metadata.uid(), metadata.gid());
        for (case, mode, uid, gid, enters) in [
            ("the owner, with the bit", 0o700, own_uid, own_gid, true),
            ("the owner, without it", 0o077, own_uid, own_gid, false),
            ("the group, with the bit", 0o010, own_uid + 1, own_gid, true),
            ("the group, without it", 0o701, own_uid + 1, own_gid, false),
            ("anyone, with the bit", 0o001, own_uid + 1, own_gid + 1, true),
            ("anyone, without it", 0o776, own_uid + 1, own_gid + 1, false),
        ] {
            set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let user = Owner { uid, gid, name: "someone".to_owned(), switches: true };
            assert_eq!(user.may_enter(&folder.path().metadata().unwrap()), enters, "{case}");
        }
        set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn the_error_names_the_folder_that_keeps_the_user_out() {
        let closed = tempfile::tempdir().unwrap();
        set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
        let metadata = closed.path().metadata().unwrap();
        let stranger = Owner {
            uid: metadata.uid() + 1,
            gid: metadata.gid() + 1,
            name: "stranger".to_owned(),
            switches: true,
        };

        let error = stranger.require_reachable(&closed.path().join("a/b")).unwrap_err().to_string();

        assert!(
            error.contains(&format!(
                "the user stranger, under which Postgres runs, may not enter {};",
                closed.path().display()
            )),
            "{error}"
        );
    }
}
