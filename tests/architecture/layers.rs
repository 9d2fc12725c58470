//! The layering table, as data. What is not in it is not allowed.

/// What a module may name beside std and itself. The row with the longest fitting path counts.
pub(crate) struct Layer {
    pub(crate) path: &'static str,
    pub(crate) modules: &'static [&'static str],
    pub(crate) crates: &'static [&'static str],
}

const fn layer(
    path: &'static str,
    modules: &'static [&'static str],
    crates: &'static [&'static str],
) -> Layer {
    Layer { path, modules, crates }
}

/// Everything of ours, for the files that put the service together.
pub(crate) const ALL: &[&str] = &[
    "domain",
    "engine",
    "intake",
    "database",
    "pipeline",
    "finance",
    "access",
    "reading",
    "http",
    "import",
    "bench",
    "embedded",
    "config",
    "clock",
    "telemetry",
    "table",
    "report",
    "app",
    "demo",
    "commands",
    "faults",
    "fuzzing",
];
/// Every crate but those that have one home: sqlx, axum, utoipa.
const TOP_CRATES: &[&str] = &[
    "chrono",
    "clap",
    "serde",
    "serde_json",
    "thiserror",
    "tokio",
    "tokio_util",
    "tracing",
    "hyper",
    "hyper_util",
    "tower",
];
const DATABASE_CRATES: &[&str] =
    &["sqlx", "chrono", "rust_decimal", "serde", "serde_json", "thiserror", "futures_util"];

/// The layering table, lowest first.
pub(crate) const LAYERS: &[Layer] = &[
    layer(
        "domain",
        &[],
        &["chrono", "iso_currency", "jiff", "rust_decimal", "serde", "serde_json", "thiserror"],
    ),
    layer("engine", &["domain"], &["thiserror"]),
    layer("intake", &["domain"], &["base64", "chrono", "serde", "serde_json", "sha2", "thiserror"]),
    layer("intake/commit_figures", &["database", "clock", "telemetry"], &[]),
    layer(
        "intake/group_commit",
        &["domain", "database", "clock"],
        &["thiserror", "tokio", "tokio_util", "tracing"],
    ),
    layer("faults", &[], &["thiserror"]),
    layer("database", &["domain", "engine"], DATABASE_CRATES),
    // A mistake on purpose, for `tests/campaign`.
    layer("database/append", &["domain", "faults"], &["chrono", "sqlx", "tokio", "tracing"]),
    layer("database/append_copy", &["domain", "faults"], DATABASE_CRATES),
    layer("database/connect", &["domain"], &["sqlx", "thiserror", "tokio", "tracing", "uuid"]),
    layer(
        "pipeline",
        &["domain", "engine", "database", "clock", "telemetry"],
        &["futures_util", "thiserror", "tokio", "tokio_util", "tracing"],
    ),
    layer("finance", &["domain", "database"], &["chrono", "serde", "thiserror"]),
    layer(
        "finance/delay_advice",
        &["domain", "database", "engine"],
        &["chrono", "serde", "thiserror", "tokio"],
    ),
    layer(
        "access",
        &["domain", "database", "clock"],
        &["futures_util", "getrandom", "sha2", "subtle", "thiserror", "tokio", "tracing"],
    ),
    layer("reading", &["domain", "database"], &["tokio", "tracing"]),
    layer(
        "http",
        &[
            "domain",
            "intake",
            "database",
            "pipeline",
            "finance",
            "access",
            "reading",
            "clock",
            "table",
            "telemetry",
        ],
        &[
            "futures_util",
            "axum",
            "base64",
            "chrono",
            "flate2",
            "form_urlencoded",
            "http_body_util",
            "hyper",
            "hyper_util",
            "percent_encoding",
            "quick_cache",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio_util",
            "tower",
            "tower_http",
            "uuid",
            "tracing",
            "utoipa",
            "utoipa_axum",
            "utoipa_swagger_ui",
            "zstd",
        ],
    ),
    layer("http/machine", &[], &["rustix", "tracing"]),
    layer(
        "import",
        &["domain", "intake", "database", "embedded", "config", "clock", "telemetry", "app"],
        &[
            "csv",
            "flate2",
            "indicatif",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "zstd",
        ],
    ),
    layer(
        "bench",
        &["domain", "database", "embedded", "config", "clock"],
        &["hdrhistogram", "httparse", "serde", "serde_json", "thiserror", "tokio", "uuid"],
    ),
    layer(
        "report",
        &["domain", "database", "http", "embedded", "config", "telemetry", "app", "table"],
        &["indicatif", "thiserror", "tokio"],
    ),
    layer("table", &[], &["csv"]),
    layer("embedded", &[], &["rustix", "thiserror", "tracing"]),
    layer("config", &["domain", "embedded", "telemetry", "faults"], &["clap", "thiserror"]),
    layer("clock", &["domain"], &["chrono", "tokio"]),
    layer("telemetry", &[], &["thiserror", "tracing", "tracing_subscriber", "tokio", "serde_json"]),
    layer("app", ALL, TOP_CRATES),
    layer("demo", ALL, TOP_CRATES),
    layer("commands", ALL, &[]),
    layer("commands/keys", ALL, &["thiserror", "tokio"]),
    layer("fuzzing", ALL, TOP_CRATES),
    layer("lib", ALL, &[]),
    layer("main", ALL, &["tikv_jemallocator", "tillmark"]),
];

/// Words that only the named module may use, and why.
pub(crate) const ONE_HOME: &[(&str, &[&str], &str)] = &[
    ("http", &["StatusCode"], "status codes are decided in http"),
    ("clock", &["SystemTime::now", "Instant::now", "Utc::now", "Local::now"], "time is passed in"),
    (
        "config",
        &[
            "env::var",
            "env::vars",
            "env::var_os",
            "env::vars_os",
            "env::set_var",
            "env::remove_var",
            "env::temp_dir",
            "env::home_dir",
            "env::current_dir",
        ],
        "the environment is read in config",
    ),
];

/// Words that the named module may not use, and why.
pub(crate) const NEVER: &[(&str, &[&str], &str)] = &[
    ("engine", &["HashMap", "HashSet"], "their order would reach the outcome"),
    (
        "engine",
        &["async", "SystemTime", "Instant", "env", "fs", "net", "println", "eprintln"],
        "the engine is pure",
    ),
    (
        "domain",
        &["async", "SystemTime", "Instant", "env", "fs", "net"],
        "a value has no surroundings",
    ),
    ("database", &["engine::step"], "only the pipeline takes a step"),
    ("http", &["database::checkpoint"], "a request never moves a query"),
];
