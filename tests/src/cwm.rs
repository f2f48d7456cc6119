//! Runs the real `cwm` binary and keeps what it said.
//!
//! `cargo test` builds the binary for this package only by chance, so the helper finds it beside the test executable
//! and has cargo build it first when it is missing or older than one of its sources. `CWM_BIN` names another binary.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::SystemTime,
};

/// What a finished process said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code; -1 if a signal ended the process.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Panics with everything that was said unless the exit code is `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "unexpected exit code\nstdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Panics with everything that was said unless the process succeeded.
    #[track_caller]
    pub fn expect_done(self) -> Self {
        self.expect_code(0)
    }
}

/// A `cwm` command with a clean environment: no colours, no `CWM_*`, no terminal, no stdin.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CWM_") || text.starts_with("CHESS_WORLD_MODEL_") {
            command.env_remove(&name);
        }
    }
    command
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .args(args);
    command
}

/// Runs `cwm` with `args` to its end.
pub fn cwm<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    finish(&mut command(args))
}

/// Runs `cwm` with `args` in the directory `dir`.
pub fn cwm_in<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> Output {
    finish(command(args).current_dir(dir))
}

/// Runs `cwm` with `args` and `input` on stdin.
pub fn cwm_with_stdin<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Output {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cwm starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // On its own thread, so that a full stdout pipe cannot lock both sides.
    let writer = std::thread::spawn(move || {
        // A process that stops reading early closes the pipe: its exit code tells why.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("cwm ends");
    writer.join().expect("the writer ends");
    said(output)
}

/// Runs a prepared command to its end.
pub fn finish(command: &mut Command) -> Output {
    said(command.output().expect("cwm starts"))
}

fn said(output: std::process::Output) -> Output {
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

/// A file under `tests/fixtures`.
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

/// The binary under test, built if need be.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("CWM_BIN") {
        Some(path) => PathBuf::from(path),
        None => built_binary(),
    })
}

fn built_binary() -> PathBuf {
    let test = std::env::current_exe().expect("the test executable has a path");
    // <target>/<profile>/deps/all-<hash>
    let profile_dir = test.parent().and_then(Path::parent).expect("a cargo target folder");
    let binary = profile_dir.join(format!("cwm{}", std::env::consts::EXE_SUFFIX));
    if is_fresh(&binary) {
        return binary;
    }
    let target_dir = profile_dir.parent().expect("a cargo target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--quiet", "--package", "cwm", "--bin", "cwm"]);
    cargo.arg("--target-dir").arg(target_dir);
    match profile_dir.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => {}
        Some(profile) => drop(cargo.args(["--profile", profile])),
    }
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "cargo could not build the `cwm` binary");
    binary
}

/// Whether the binary exists and is at least as new as every source in the dependency file beside it.
fn is_fresh(binary: &Path) -> bool {
    let modified = |path: &Path| -> Option<SystemTime> { fs::metadata(path).ok()?.modified().ok() };
    let Some(built) = modified(binary) else { return false };
    let Ok(rule) = fs::read_to_string(binary.with_extension("d")) else { return false };
    let Some((_, sources)) = rule.split_once(": ") else { return false };
    words_of_rule(sources)
        .iter()
        .all(|source| modified(Path::new(source)).is_some_and(|changed| changed <= built))
}

/// The paths on the right of a make rule, in which a space inside a path is written `\ `.
pub fn words_of_rule(rule: &str) -> Vec<OsString> {
    let mut words = vec![String::new()];
    let mut chars = rule.trim_end().chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => words.last_mut().expect("never empty").push(chars.next().unwrap_or('\\')),
            c if c.is_whitespace() => words.push(String::new()),
            c => words.last_mut().expect("never empty").push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(OsString::from).collect()
}
