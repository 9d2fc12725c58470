//! The points in the source at which the service can die.

use std::fs;
use std::path::Path;

/// How few points there may be of each kind, so that none is lost unseen.
const POINTS_MIN: [(&str, usize); 3] = [("ingest.", 8), ("engine.", 14), ("recovery.", 4)];

/// Their names, in the order of the source files.
pub fn names() -> Vec<String> {
    let mut names = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    for (kind, min) in POINTS_MIN {
        let count = names.iter().filter(|name| name.starts_with(kind)).count();
        assert!(count >= min, "{count} points {kind}* in the source");
    }
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len(), "a point has a name of its own: {names:?}");
    names
}

fn read(folder: &Path, names: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read(&path, names);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let found = text.split("fault_point!(\"").skip(1);
        names.extend(found.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
}
