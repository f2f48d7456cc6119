//! The command line as a whole: exit codes, streams, colours, closed pipes.

use std::{
    io::Read,
    process::{Command, Stdio},
};

use cwm_tests::cwm::{command, cwm, cwm_in, finish, root, words_of_rule};

#[test]
fn an_unknown_command_is_a_usage_error_with_a_suggestion() {
    let said = cwm(["dta"]).expect_code(2);
    assert_eq!(said.stdout, "", "errors go to stderr");
    assert!(said.stderr.contains("similar subcommand exists: 'data'"), "{}", said.stderr);
}

#[test]
fn an_unknown_flag_is_a_usage_error_with_a_suggestion() {
    let said = cwm(["doctor", "--fromat", "json"]).expect_code(2);
    assert_eq!(said.stdout, "", "errors go to stderr");
    assert!(said.stderr.contains("'--format'"), "{}", said.stderr);
}

#[test]
fn colours_follow_the_environment() {
    let plain = cwm(["dta"]).expect_code(2);
    assert!(!plain.stderr.contains('\x1b'), "NO_COLOR is set: {:?}", plain.stderr);
    let piped = finish(command(["dta"]).env_remove("NO_COLOR"));
    assert!(!piped.stderr.contains('\x1b'), "stderr is no terminal: {:?}", piped.stderr);
    let forced = finish(command(["dta"]).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1"));
    assert!(forced.stderr.contains('\x1b'), "colours were forced: {:?}", forced.stderr);
}

/// `cwm ... | head -c 0` ends quietly: the reader of our results went away, which is no failure.
#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [
        ["doctor"].as_slice(),
        &["evaluate", "naive-mover", "--human-sample"],
        &["predict", "naive-mover", "--san", "e4 e5"],
        &["doctor", "--format", "json"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cwm starts");
        // Whether the process writes before or after, nothing will be read.
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut errors).expect("UTF-8");
        let status = child.wait().expect("cwm ends");
        assert_eq!((status.code(), errors.as_str()), (Some(0), ""), "cwm {}", args.join(" "));
    }
}

/// Results that a program can read: one JSON document on stdout, whatever goes to stderr.
#[test]
fn json_is_the_only_thing_on_stdout() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    cwm_in(dir.path(), ["data", "random", "--games", "3", "--out", "random"]).expect_done();
    for args in [
        ["evaluate", "naive-mover", "--human-sample"].as_slice(),
        &["evaluate", "oracle", "--data", "random=random"],
        &["predict", "naive-mover", "--san", "e4 e5 Nf3"],
        &["data", "info", "random"],
        &["inspect", "random"],
    ] {
        let args = [args, &["--format", "json", "--progress", "plain"]].concat();
        let said = cwm_in(dir.path(), &args).expect_done();
        let document: Result<serde_json::Value, _> = serde_json::from_str(&said.stdout);
        assert!(document.is_ok_and(|d| d.is_object()), "cwm {}: {}", args.join(" "), said.stdout);
        let control = said.stderr.chars().any(|c| c.is_control() && c != '\n');
        assert!(!control, "control characters in a log: {:?}", said.stderr);
    }
}

#[test]
fn without_progress_stderr_is_silent() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    for args in [
        ["data", "random", "--games", "3", "--out", "random"].as_slice(),
        &["data", "info", "random"],
        &["data", "export", "random", "--out", "random.jsonl"],
        &["data", "prepare", "random.jsonl", "--out", "again"],
        &["evaluate", "naive-mover", "--data", "random=random"],
        &["evaluate", "naive-mover", "--random", "2", "--out", "scores"],
        &["predict", "naive-mover", "--uci", "e2e4 e7e5"],
        &["inspect", "random"],
    ] {
        let said = cwm_in(dir.path(), [args, &["--progress", "none"]].concat()).expect_done();
        assert_eq!(said.stderr, "", "cwm {}", args.join(" "));
    }
}

#[test]
fn without_a_command_the_main_job_is_done() {
    let said = cwm(["--progress", "none"]).expect_done();
    assert_eq!(said.stderr, "");
    for word in ["classics", "random-uniform", "naive-mover+rights+ep", "oracle", "paper:"] {
        assert!(said.stdout.contains(word), "{word} is missing from:\n{}", said.stdout);
    }
}

#[test]
fn a_full_disk_is_an_error() {
    // A device that refuses every byte, where the system has one.
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let said = finish(command(["doctor"]).stdout(full));
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.starts_with("error: cannot write to stdout"), "{}", said.stderr);
}

#[test]
fn doctor_answers_in_one_json_document() {
    let said = cwm(["doctor", "--format", "json"]).expect_done();
    assert_eq!(said.stderr, "");
    let findings: serde_json::Value = serde_json::from_str(&said.stdout).expect("one document");
    assert_eq!(findings["format"], 1);
    assert_eq!(findings["burn"], cwm_models::backend::BURN_VERSION);
    assert!(findings["cores"].as_u64().is_some_and(|cores| cores > 0));
    let backends = findings["backends"].as_array().expect("backends");
    let names: Vec<_> = backends.iter().map(|backend| backend["name"].as_str()).collect();
    assert_eq!(names, [Some("cpu"), Some("wgpu"), Some("vulkan"), Some("cuda")]);
    assert_eq!(backends[0]["usable"], true);
    for backend in backends {
        assert_eq!(backend["usable"], backend["reason"].is_null(), "{backend}");
    }
}

#[test]
fn the_version_names_revision_burn_and_backends() {
    let long = cwm(["--version"]).expect_done().stdout;
    let keys: Vec<_> = long.lines().map(|line| line.split(' ').next().unwrap_or("")).collect();
    assert_eq!(keys, ["cwm", "revision:", "burn:", "backends:"], "{long}");
    assert!(long.contains(env!("CARGO_PKG_VERSION")), "{long}");
    assert!(long.contains("backends: cpu"), "{long}");
    // A source archive has no revision to tell.
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    if let Ok(git) = git
        && git.status.success()
    {
        let head = String::from_utf8_lossy(&git.stdout).into_owned();
        let told = long.lines().find_map(|line| line.strip_prefix("revision: "));
        assert!(told.is_some_and(|told| head.starts_with(told)), "{told:?} is not {head}");
    }
    let short = cwm(["-V"]).expect_done().stdout;
    assert!(short.starts_with(concat!("cwm ", env!("CARGO_PKG_VERSION"))), "{short}");
    assert_eq!(short.lines().count(), 1);
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = cwm(["completions", shell]).expect_done().stdout;
        for name in ["data", "doctor", "completions"] {
            assert!(script.contains(name), "the script for {shell} does not mention {name}");
        }
    }
    cwm(["completions", "tcsh"]).expect_code(2);
}

#[test]
fn the_burn_version_is_the_one_in_the_lock_file() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("the lock file");
    let (_, after) = lock.split_once("name = \"burn\"\nversion = \"").expect("burn is locked");
    let (version, _) = after.split_once('"').expect("a quoted version");
    assert_eq!(cwm_models::backend::BURN_VERSION, version);
}

#[test]
fn dependency_rules_keep_spaces_in_paths() {
    assert_eq!(words_of_rule("/a\\ b/c.rs /d.rs\n"), ["/a b/c.rs", "/d.rs"]);
}
