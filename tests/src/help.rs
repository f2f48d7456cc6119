//! `--help` of every command: snapshots, examples that parse, and the commands that documents show.
//!
//! `CWM_UPDATE_HELP=1 cargo test --release -p cwm-tests help` writes the snapshots anew.

use std::{collections::BTreeSet, fs, path::Path};

use clap::{Command, CommandFactory, Parser};
use cwm::cli::Cli;
use cwm_tests::cwm::{cwm, fixture, root};

/// Every command with the words after `cwm` that call it, the bare `cwm` first, parents before children.
fn commands() -> Vec<(Vec<String>, Command)> {
    fn walk(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        found.push((words.to_vec(), command.clone()));
        for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
            walk(child, &[words, &[child.get_name().to_string()]].concat(), found);
        }
    }
    let mut found = Vec::new();
    walk(&Cli::command(), &[], &mut found);
    found
}

fn help_of(words: &[String]) -> String {
    let args = words.iter().map(String::as_str).chain(["--help"]);
    let said = cwm(args).expect_code(0);
    assert_eq!(said.stderr, "", "help is a result and goes to stdout");
    // Trailing blanks would only make the snapshots fragile.
    said.stdout.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

#[test]
fn help_is_as_recorded() {
    let update = std::env::var_os("CWM_UPDATE_HELP").is_some();
    let dir = fixture("help");
    let mut expected_files = BTreeSet::new();
    let mut changed = Vec::new();
    for (words, _) in commands() {
        let name = ["cwm".to_string()].iter().chain(&words).cloned().collect::<Vec<_>>().join("-");
        let path = dir.join(format!("{name}.txt"));
        expected_files.insert(format!("{name}.txt"));
        let help = help_of(&words);
        if update {
            fs::create_dir_all(&dir).expect("the snapshot folder");
            fs::write(&path, help).expect("a snapshot");
        } else if fs::read_to_string(&path).unwrap_or_default() != help {
            changed.push(name);
        }
    }
    for entry in fs::read_dir(&dir).expect("the snapshot folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !expected_files.contains(&name) && name != "README.md" {
            if update {
                fs::remove_file(&path).expect("a stale snapshot");
            } else {
                changed.push(name);
            }
        }
    }
    assert!(
        changed.is_empty(),
        "the help of {changed:?} differs from tests/fixtures/help; look at it, then run\n  \
         CWM_UPDATE_HELP=1 cargo test --release -p cwm-tests help"
    );
}

#[test]
fn every_command_shows_two_examples_that_parse() {
    let mut poor = Vec::new();
    for (words, command) in commands() {
        if command.has_subcommands() {
            continue;
        }
        // As written, not as wrapped for a terminal.
        let texts = [command.get_after_help(), command.get_after_long_help()];
        let text: String =
            texts.into_iter().flatten().map(|text| text.to_string() + "\n").collect();
        let examples = text.split_once("Examples:\n").map_or("", |(_, after)| after);
        let examples = examples.replace("\\\n", " ");
        let own = format!("cwm {}", words.join(" "));
        let shown: Vec<String> = command_lines(&examples).collect();
        if shown.iter().filter(|line| line.starts_with(own.trim_end())).count() < 2 {
            poor.push(words.join(" "));
        }
        for line in shown {
            if let Err(error) = parses(&line) {
                panic!("an example of `{own}` does not parse: {line}\n{error}");
            }
        }
    }
    assert!(poor.is_empty(), "fewer than two examples in the help of {poor:?}");
}

#[test]
fn help_fits_terminals() {
    for (words, command) in commands() {
        let texts = [command.get_after_help(), command.get_after_long_help()];
        for text in texts.into_iter().flatten().map(ToString::to_string) {
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                assert!(
                    !(prose(pair[0]) && prose(pair[1])),
                    "{words:?}: clap wraps paragraphs, so each must be one line: {pair:?}"
                );
            }
            for line in lines.iter().filter(|line| line.starts_with(' ')) {
                assert!(
                    line.len() < 100,
                    "{words:?}: an example of {} letters: {line}",
                    line.len()
                );
            }
        }
    }
}

/// The commands in a help text: trimmed lines that call `cwm`, from the call on, cut at a pipe.
fn command_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("$ ");
        let line = line.split(" #").next().unwrap_or(line).trim_end();
        let called = line.split(" | ").map(str::trim).find(|part| {
            *part == "cwm"
                || part.starts_with("cwm ")
                || part.contains("=") && part.contains(" cwm ")
        })?;
        let start = called.find("cwm").unwrap_or(0);
        Some(called[start..].to_string())
    })
}

fn parses(line: &str) -> Result<(), String> {
    match Cli::try_parse_from(words_of(line)) {
        Ok(_) => Ok(()),
        // Help and version end parsing early, as they should.
        Err(error) if !error.use_stderr() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Splits a command line at blanks outside quotes, up to a redirection.
fn words_of(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '>' | '<' | ';' | '&') => break,
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => words.last_mut().expect("never empty").push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

/// Markdown files of the repository, outside the build and data folders.
fn documents() -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir()
                && !name.starts_with('.')
                && !["target", "runs", "data", "dist", "node_modules"].contains(&name.as_str())
            {
                folders.push(path);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn documents_show_commands_that_parse() {
    let mut wrong = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for block in text.split("```sh\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default().replace("\\\n", " ");
            for line in block.replace("cargo run --release -- ", "cwm ").lines() {
                for command in command_lines(line) {
                    if let Err(error) = parses(&command) {
                        wrong.push(format!("{}: {command}\n{error}", path.display()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documents_link_to_files_that_exist() {
    let mut broken = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        let folder = path.parent().unwrap_or(Path::new("."));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
