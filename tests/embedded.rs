//! The private Postgres, started and stopped for real. Needs the server programs, as `make test` installs them.

#![allow(clippy::unwrap_used, reason = "a test that panics says where")]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tillmark::embedded::{
    EmbeddedError, EmbeddedPostgres, EmbeddedSettings, SharedPostgres, running_url,
};

#[test]
fn a_cold_start_makes_a_private_and_durable_server() {
    let scratch = Scratch::new();
    let postgres = scratch.start();

    for (setting, value) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("data_checksums", "on"),
        ("server_encoding", "UTF8"),
        ("listen_addresses", ""),
    ] {
        assert_eq!(
            ask(postgres.url(), &format!("select current_setting('{setting}')")),
            value,
            "{setting}"
        );
    }
    assert_eq!(ask(postgres.url(), "select current_database()::text"), "tillmark");
    for (folder, case) in
        [(postgres.data_dir(), "data"), (&socket_folder(postgres.url()), "socket")]
    {
        assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700, "{case}");
    }
    let server = postmaster_pid(postgres.data_dir()).as_raw_pid();
    let own_group = rustix::process::getpgid(Pid::from_raw(server)).unwrap();
    assert_eq!(own_group.as_raw_pid(), server, "Ctrl-C in the terminal must not reach the server");
    postgres.stop().unwrap();
}

#[test]
fn the_address_in_the_data_folder_is_the_one_psql_takes_and_goes_with_the_server() {
    let scratch = Scratch::new();
    let postgres = scratch.start();
    let url_file = postgres.data_dir().join("postgres.url");
    let socket_folder = socket_folder(postgres.url());

    let address = fs::read_to_string(&url_file).unwrap();
    assert_eq!(address.trim(), postgres.url());
    let output =
        Command::new("psql").args([address.trim(), "-Atc", "select 6 * 7"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "42", "{output:?}");

    postgres.stop().unwrap();
    assert!(!url_file.exists());
    assert!(!socket_folder.exists());
}

#[test]
fn data_is_there_again_after_a_warm_start() {
    let scratch = Scratch::new();
    let postgres = scratch.start();
    run(postgres.url(), "create table sales as select 12 as amount");
    drop(postgres);

    let postgres = scratch.start();
    assert_eq!(ask(postgres.url(), "select amount::text from sales"), "12");
}

#[test]
fn a_second_instance_is_refused_with_the_folder_and_the_holder() {
    let scratch = Scratch::new();
    let postgres = scratch.start();

    let error = EmbeddedPostgres::start(&scratch.settings()).unwrap_err().to_string();

    let (folder, holder) = (postgres.data_dir().display(), std::process::id());
    assert_eq!(
        error,
        format!("the data folder {folder} is in use by another Tillmark, process {holder}")
    );
    assert_eq!(ask(postgres.url(), "select 'undisturbed'"), "undisturbed");
}

#[test]
fn a_tool_beside_a_service_uses_its_server_and_leaves_it_running() {
    let scratch = Scratch::new();
    assert_eq!(running_url(&scratch.settings()), None);
    let service = SharedPostgres::start_or_find(&scratch.settings()).unwrap();
    let tool = SharedPostgres::start_or_find(&scratch.settings()).unwrap();
    assert!(matches!((&service, &tool), (SharedPostgres::Own(_), SharedPostgres::Running { .. })));
    assert_eq!(tool.url(), service.url());
    assert_eq!(running_url(&scratch.settings()).as_deref(), Some(service.url()));

    tool.stop().unwrap();

    assert_eq!(ask(service.url(), "select 'undisturbed'"), "undisturbed");
    service.stop().unwrap();
    assert_eq!(running_url(&scratch.settings()), None);
}

#[test]
fn a_server_that_ends_unasked_is_started_again() {
    let scratch = Scratch::new();
    let postgres = scratch.start();
    run(postgres.url(), "create table sales as select 12 as amount");

    for signal in [Signal::QUIT, Signal::KILL] {
        let before = postmaster_pid(postgres.data_dir());
        kill_process(before, signal).unwrap();
        wait_until("the server runs again", || {
            try_ask(postgres.url(), "select amount::text from sales")
                .is_some_and(|amount| amount == "12")
                && postmaster_pid(postgres.data_dir()) != before
        });
    }
    postgres.stop().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn killing_the_service_ends_its_server_too() {
    let scratch = Scratch::new();
    let mut holder = Holder::start(&scratch);
    run(&holder.url, "create table sales as select 12 as amount");
    let server = postmaster_pid(&scratch.data_dir());

    holder.process.kill().unwrap();
    holder.process.wait().unwrap();

    // Until someone collects its status the process id stays, but without a program.
    let program = format!("/proc/{}/exe", server.as_raw_pid());
    wait_until("the server is gone", || fs::read_link(&program).is_err());
    let postgres = scratch.start();
    assert_eq!(ask(postgres.url(), "select amount::text from sales"), "12");
}

#[test]
fn a_server_left_over_from_last_time_is_stopped_first() {
    let scratch = Scratch::new();
    scratch.start().stop().unwrap();
    let mut leftover = scratch.run_server_by_hand();
    wait_until("the leftover is ready", || {
        scratch.postmaster_file().is_some_and(|text| text.contains("ready"))
    });

    let postgres = scratch.start();

    assert!(leftover.wait().unwrap().success(), "the leftover was asked to stop, not killed");
    assert_eq!(ask(postgres.url(), "select 'served'"), "served");
}

#[test]
fn a_process_that_took_over_the_number_of_an_old_server_is_left_alone() {
    let scratch = Scratch::new();
    scratch.start().stop().unwrap();
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let file = scratch.data_dir().join("pg/postmaster.pid");
    fs::write(file, format!("{}\n{}\n", bystander.id(), scratch.data_dir().join("pg").display()))
        .unwrap();

    let postgres = scratch.start();

    assert_eq!(ask(postgres.url(), "select 'served'"), "served");
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_cluster_that_was_not_finished_is_made_again() {
    let scratch = Scratch::new();
    scratch.start().stop().unwrap();
    fs::rename(scratch.data_dir().join("pg"), scratch.data_dir().join("pg.new")).unwrap();
    fs::remove_file(scratch.data_dir().join("pg.new/PG_VERSION")).unwrap();

    let postgres = scratch.start();

    assert_eq!(ask(postgres.url(), "select 'served'"), "served");
    assert!(!scratch.data_dir().join("pg.new").exists());
}

#[test]
fn data_of_another_major_version_is_refused_and_not_touched() {
    let scratch = Scratch::new();
    scratch.start().stop().unwrap();
    let version_file = scratch.data_dir().join("pg/PG_VERSION");
    fs::write(&version_file, "12\n").unwrap();

    let error = EmbeddedPostgres::start(&scratch.settings()).unwrap_err();

    assert!(matches!(error, EmbeddedError::OtherMajorVersion { data_major: 12, .. }), "{error}");
    assert!(error.to_string().contains("was made by PostgreSQL 12"), "{error}");
    assert_eq!(fs::read_to_string(version_file).unwrap(), "12\n");
}

#[test]
fn a_folder_with_other_files_in_it_is_refused_and_keeps_its_owner_and_mode() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.data_dir()).unwrap();
    fs::write(scratch.data_dir().join("holiday.jpg"), "").unwrap();
    fs::set_permissions(scratch.data_dir(), Permissions::from_mode(0o755)).unwrap();
    let before = fs::metadata(scratch.data_dir()).unwrap();

    let error = EmbeddedPostgres::start(&scratch.settings()).unwrap_err();

    assert!(matches!(error, EmbeddedError::ForeignFolder { .. }), "{error}");
    let after = fs::metadata(scratch.data_dir()).unwrap();
    assert_eq!((after.uid(), after.mode()), (before.uid(), before.mode()));
}

#[test]
fn a_start_that_fails_quotes_what_the_server_said() {
    let scratch = Scratch::new();
    scratch.start().stop().unwrap();
    let settings_file = scratch.data_dir().join("pg/postgresql.conf");
    fs::write(&settings_file, "work_mem = plenty\n").unwrap();

    let error = EmbeddedPostgres::start(&scratch.settings()).unwrap_err().to_string();

    assert!(error.starts_with("Postgres ended with exit status: 1 while starting"), "{error}");
    assert!(error.contains("work_mem"), "{error}");
}

#[test]
fn as_root_a_folder_that_the_server_may_not_enter_is_named() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root runs the server under another user");
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(scratch.folder.path(), Permissions::from_mode(0o700)).unwrap();

    let error = EmbeddedPostgres::start(&scratch.settings()).unwrap_err().to_string();

    let closed = scratch.folder.path().display();
    assert!(
        error.contains(&format!("under which Postgres runs, may not enter {closed};")),
        "{error}"
    );
    assert!(!scratch.data_dir().exists(), "nothing is left where it cannot be used");
}

/// Not a test: the body of the process that [`Holder`] starts. Run by hand it reads an empty line and ends.
#[test]
#[ignore = "runs only as the child process of another test"]
fn holder() {
    let mut data_dir = String::new();
    std::io::stdin().read_line(&mut data_dir).unwrap();
    if data_dir.trim().is_empty() {
        return;
    }
    let settings =
        EmbeddedSettings { data_dir: Some(PathBuf::from(data_dir.trim())), ..Default::default() };
    let postgres = EmbeddedPostgres::start(&settings).unwrap();
    println!("\nurl {}", postgres.url());
    loop {
        sleep(Duration::from_secs(60));
    }
}

/// Another process that holds a private Postgres.
struct Holder {
    process: Child,
    url: String,
}

impl Holder {
    fn start(scratch: &Scratch) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holder", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(process.stdin.take().unwrap(), "{}", scratch.data_dir().display()).unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines
            .find_map(|line| line.unwrap().strip_prefix("url ").map(str::to_owned))
            .expect("it starts");
        Self { process, url }
    }
}

/// A folder that everybody may enter, as the parent of a data folder.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("data")
    }

    fn settings(&self) -> EmbeddedSettings {
        EmbeddedSettings { data_dir: Some(self.data_dir()), ..Default::default() }
    }

    fn start(&self) -> EmbeddedPostgres {
        EmbeddedPostgres::start(&self.settings()).unwrap()
    }

    fn postmaster_file(&self) -> Option<String> {
        fs::read_to_string(self.data_dir().join("pg/postmaster.pid")).ok()
    }

    /// A server as a service that was killed would leave it behind, on the program the last start used.
    fn run_server_by_hand(&self) -> Child {
        use std::os::unix::process::CommandExt;
        let options = fs::read_to_string(self.data_dir().join("pg/postmaster.opts")).unwrap();
        let program = options.split(' ').next().unwrap();
        let cluster = self.data_dir().join("pg");
        let owner = fs::metadata(&cluster).unwrap();
        let mut command = Command::new(program);
        command.arg("-D").arg(&cluster).arg("-k").arg(&cluster).args(["-c", "listen_addresses="]);
        command.current_dir(&cluster).env("LC_ALL", "C").stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        command.spawn().unwrap()
    }
}

fn postmaster_pid(data_dir: &Path) -> Pid {
    let text = fs::read_to_string(data_dir.join("pg/postmaster.pid")).unwrap();
    Pid::from_raw(text.lines().next().unwrap().parse().unwrap()).unwrap()
}

fn socket_folder(url: &str) -> PathBuf {
    let (_, host) = url.split_once("host=").unwrap();
    PathBuf::from(host.split('&').next().unwrap())
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if condition() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}");
}

fn ask(url: &str, query: &str) -> String {
    try_ask(url, query).expect("the server answers")
}

#[tokio::main(flavor = "current_thread")]
async fn try_ask(url: &str, query: &str) -> Option<String> {
    let mut connection = PgConnection::connect(url).await.ok()?;
    sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(&mut connection).await.ok()
}

#[tokio::main(flavor = "current_thread")]
async fn run(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
}
