//! Keeps the layering table true: who may import whom, and which crate, word or text belongs in one place only.
//!
//! A new top module or a new use of a crate fails here until the table says that it is meant.

#![allow(clippy::unwrap_used, reason = "a test that panics says where")]

#[path = "architecture/layers.rs"]
mod layers;
#[path = "architecture/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use layers::{ALL, LAYERS, NEVER, ONE_HOME};
use source::Source;

/// How SQL begins, and what must follow. A sentence begins with a capital and is not taken for one.
const SQL_BEGINNINGS: &[(&str, &str)] = &[
    ("select ", ""),
    ("insert into ", ""),
    ("delete from ", ""),
    ("update ", " set "),
    ("with ", " as "),
    ("create table ", ""),
    ("create index ", ""),
    ("alter table ", ""),
    ("drop table ", ""),
    ("truncate ", ""),
    ("lock table ", ""),
    ("copy ", " std"),
];

const FILE_LINES_MAX: usize = 400;

/// Everything wrong with one file; `path` is below `src`.
fn faults(path: &Path, text: &str, crates: &[String]) -> Vec<String> {
    let module = module_path(path);
    let top = module.split('/').next().unwrap_or_default();
    let fits = |layer: &&layers::Layer| {
        module.strip_prefix(layer.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let Some(layer) = LAYERS.iter().filter(fits).max_by_key(|layer| layer.path.len()) else {
        return vec![format!("`{top}` is not in the layering table of tests/architecture.rs")];
    };
    let source = Source::read(text);
    let depth = if matches!(top, "lib" | "main") { 0 } else { module.split('/').count() };

    let mut faults = Vec::new();
    for other in source.own_modules(depth) {
        if ALL.contains(&other.as_str()) && other != top && !layer.modules.contains(&other.as_str())
        {
            faults.push(format!("`{}` may not use our module `{other}`", layer.path));
        }
    }
    for head in source.path_heads() {
        if crates.contains(&head) && !layer.crates.contains(&head.as_str()) {
            faults.push(format!("`{}` may not use the crate `{head}`", layer.path));
        }
    }
    for (home, words, reason) in ONE_HOME.iter().filter(|(home, ..)| *home != top) {
        for word in words.iter().filter(|word| source.names(word)) {
            faults.push(format!("`{word}` belongs in `{home}`: {reason}"));
        }
    }
    for (_, words, reason) in NEVER.iter().filter(|(guarded, ..)| *guarded == top) {
        for word in words.iter().filter(|word| source.names(word)) {
            faults.push(format!("`{top}` may not use `{word}`: {reason}"));
        }
    }
    if top != "database" {
        for sql in source.strings.iter().filter(|text| is_sql(text)) {
            faults.push(format!("SQL belongs in `database`: {sql:?}"));
        }
    }
    if source.n_lines > FILE_LINES_MAX {
        faults.push(format!("{} lines without tests; split it by noun", source.n_lines));
    }
    faults
}

fn is_sql(text: &str) -> bool {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    SQL_BEGINNINGS.iter().any(|(begins, follows)| {
        (text.starts_with(begins) && text.contains(follows))
            || (text.starts_with(&begins.to_uppercase()) && text.contains(&follows.to_uppercase()))
    })
}

/// `http/events` of `http/events.rs`, `http` of `http/mod.rs`.
fn module_path(path: &Path) -> String {
    let module = path.with_extension("");
    let module = if module.ends_with("mod") { module.parent().unwrap_or(&module) } else { &module };
    module.to_string_lossy().into_owned()
}

/// All source files, in order; a file of tests alone (`tests.rs`, or in a folder `tests`) is not guarded.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let of_tests = |path: &PathBuf| path.file_stem().is_some_and(|name| name == "tests");
    paths.retain(|path| !of_tests(path));
    paths
        .into_iter()
        .flat_map(|path| if path.is_dir() { source_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The crates that the manifest names, as the source spells them.
fn crates_of_manifest(manifest: &str) -> Vec<String> {
    let mut in_dependencies = false;
    let mut crates = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if let (true, Some((name, _))) = (in_dependencies, line.split_once('='))
            && !line.starts_with('#')
        {
            crates.push(name.split('.').next().unwrap_or(name).trim().replace('-', "_"));
        }
    }
    crates
}

fn our_crates() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    crates_of_manifest(&fs::read_to_string(root.join("Cargo.toml")).unwrap())
}

#[test]
fn every_module_uses_only_what_the_layering_table_allows() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let crates = our_crates();
    let files = source_files(&src);
    assert!(files.iter().any(|path| path.ends_with("lib.rs")), "the source was found");

    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(&src).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        found.extend(
            faults(path, &text, &crates)
                .into_iter()
                .map(|fault| format!("src/{}: {fault}", path.display())),
        );
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_table_names_every_module_once_and_only_modules_that_can_be() {
    for (index, layer) in LAYERS.iter().enumerate() {
        let again = LAYERS.iter().skip(index + 1).any(|other| other.path == layer.path);
        assert!(!again, "{} is there twice", layer.path);
        for module in layer.modules {
            assert!(ALL.contains(module), "{} may use {module}, which is no module", layer.path);
        }
    }
}

#[test]
fn a_violation_is_caught_wherever_it_hides() {
    let crates = our_crates();
    for (path, text, expected) in [
        ("surprise/mod.rs", "", "`surprise` is not in the layering table"),
        ("surprise.rs", "", "`surprise` is not in the layering table"),
        ("engine/step.rs", "use crate::database::Rows;", "may not use our module `database`"),
        (
            "engine/step.rs",
            "use crate::{domain::Event, http::Problem};",
            "may not use our module `http`",
        ),
        (
            "engine/step.rs",
            "use crate::{\n    domain::{A, B},\n    http,\n};",
            "may not use our module `http`",
        ),
        (
            "engine/step.rs",
            "fn f() { crate::database::read() }",
            "may not use our module `database`",
        ),
        (
            "engine/step.rs",
            "use super::super::database::Rows;",
            "may not use our module `database`",
        ),
        ("engine/mod.rs", "use super::database::Rows;", "may not use our module `database`"),
        ("engine/step.rs", "use serde::Serialize;", "may not use the crate `serde`"),
        (
            "engine/step.rs",
            "#[derive(serde::Serialize)] struct S;",
            "may not use the crate `serde`",
        ),
        ("engine/step.rs", "use tracing;", "may not use the crate `tracing`"),
        ("engine/step.rs", "use ::tokio as t;", "may not use the crate `tokio`"),
        ("engine/step.rs", "use std::collections::HashMap;", "may not use `HashMap`"),
        ("engine/step.rs", "pub async fn step() {}", "may not use `async`"),
        ("domain/time.rs", "fn f() -> X { chrono::Utc::now() }", "`Utc::now` belongs in `clock`"),
        (
            "intake/validate.rs",
            "use crate::database::append;",
            "`intake` may not use our module `database`",
        ),
        ("intake/group_commit.rs", "use crate::engine::step;", "may not use our module `engine`"),
        ("database/windows.rs", "use crate::engine::step;", "may not use `engine::step`"),
        (
            "finance/reconcile.rs",
            "use crate::engine::window;",
            "`finance` may not use our module `engine`",
        ),
        ("pipeline/runner.rs", "use sqlx::PgPool;", "may not use the crate `sqlx`"),
        ("finance/lateness.rs", "const Q: &str = \"select 1\";", "SQL belongs in `database`"),
        (
            "finance/lateness.rs",
            "const Q: &str = r#\"\n  SELECT a from b\"#;",
            "SQL belongs in `database`",
        ),
        ("pipeline/runner.rs", "use hyper::StatusCode;", "`StatusCode` belongs in `http`"),
        (
            "http/events.rs",
            "use crate::database::checkpoint;",
            "may not use `database::checkpoint`",
        ),
        ("app.rs", "fn f() { std::env::var(\"HOME\"); }", "`env::var` belongs in `config`"),
        (
            "app.rs",
            "const X: char = '\"'; use sqlx::PgPool; const Y: char = '\"';",
            "may not use the crate `sqlx`",
        ),
        ("app.rs", "fn f<'a>(x: &'a str) {} use sqlx::PgPool;", "may not use the crate `sqlx`"),
        (
            "app.rs",
            "#[cfg(test)]\nmod tests { fn f() {} }\nuse sqlx::PgPool;",
            "may not use the crate `sqlx`",
        ),
        ("app.rs", &"\n".repeat(401), "401 lines without tests"),
    ] {
        let found = faults(Path::new(path), text, &crates);
        assert!(
            found.iter().any(|fault| fault.contains(expected)),
            "{path}: {text:?} gave {found:?}"
        );
    }
}

#[test]
fn what_is_allowed_passes() {
    let crates = our_crates();
    for (path, text) in [
        (
            "engine/step.rs",
            "use crate::domain::Event; use super::state::State; use crate::engine::rules;",
        ),
        (
            "engine/step.rs",
            "/// Unlike `tokio::spawn`, see HashMap.\n// sqlx::query\n/* axum::Router */ fn f() {}",
        ),
        (
            "engine/step.rs",
            "#[cfg(test)]\nmod tests { use std::collections::HashMap; use tokio::time; }",
        ),
        ("engine/step.rs", "const TEXT: &str = \"use tokio::time \\\" sqlx::query\";"),
        ("engine/step.rs", "use crate::domain::tracing::X; fn environment() {}"),
        ("intake/group_commit/queue.rs", "use crate::database::append; use tokio::sync::mpsc;"),
        ("finance/delay_advice.rs", "use crate::engine::step;"),
        (
            "database/rows.rs",
            "const Q: &str = \"select 1\"; use sqlx::PgPool; use super::super::domain::X;",
        ),
        ("http/windows.rs", "const TEXT: &str = \"Select a store\"; use axum::http::StatusCode;"),
        ("clock.rs", "fn now() { chrono::Utc::now() }"),
        ("config.rs", "fn read() { std::env::var(\"A\") }"),
        ("app.rs", &format!("#[cfg(test)]\nmod tests {{{}}}\n", "\n".repeat(500))),
    ] {
        assert_eq!(
            faults(Path::new(path), text, &crates),
            Vec::<String>::new(),
            "{path}: {text:?}"
        );
    }
}
