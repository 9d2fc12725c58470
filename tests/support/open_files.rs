//! How many files this process, and what it starts, may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows so many; a test that cannot have them says what to do.
pub fn allow_open_files(needed: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return;
    }
    let raised = Rlimit { current: Some(needed), maximum };
    assert!(
        maximum.is_none_or(|maximum| maximum >= needed)
            && setrlimit(Resource::Nofile, raised).is_ok(),
        "this test needs {needed} open files and the system allows {maximum:?}: raise the limit with \
         `ulimit -Hn {needed}` and run it again",
    );
}
