//! The repository's own rules: who may depend on whom, file sizes, licences, words that do not belong in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use cwm_tests::cwm::root;

/// Rust files that may be longer than [`LINES_MAX`], with the reason.
const LONG_FILES: &[(&str, &str)] = &[];
/// Lines of a Rust file, without the unit tests at its end.
const LINES_MAX: usize = 400;
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Which packages of the workspace each may use: the arrows of the architecture.
const ARROWS: [(&str, &[&str]); 7] = [
    ("cwm-core", &[]),
    ("cwm-models", &["cwm-core"]),
    ("cwm", &["cwm-core", "cwm-models"]),
    ("cwm-protocol", &["cwm-core"]),
    ("cwm-app", &["cwm-core", "cwm-protocol"]),
    ("cwm-worker", &["cwm-core", "cwm-models", "cwm-protocol"]),
    ("cwm-tests", &["cwm", "cwm-core", "cwm-models"]),
];

/// Beginnings of the names of tensor libraries, GPU interfaces and the like, which `cwm-core` must not reach.
const HEAVY: [&str; 9] =
    ["burn", "cubecl", "wgpu", "ndarray", "gemm", "candle", "tokio", "rayon", "clap"];

/// Licences that a GPL-3.0-or-later program may link.
const LICENCES: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "GPL-3.0-or-later",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// What a command prints in the repository's root.
fn printed(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(root()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {errors}", args.join(" "));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// `cargo tree` as lines without indentation, each once.
fn tree(args: &[&str]) -> BTreeSet<String> {
    let mut all = vec!["tree", "--locked", "--prefix", "none", "--no-dedupe"];
    all.extend_from_slice(args);
    printed(env!("CARGO"), &all).lines().filter(|l| !l.is_empty()).map(str::to_string).collect()
}

/// Paths of the files in git (and new ones that it does not ignore), relative to the root.
fn files() -> Vec<String> {
    printed("git", &["ls-files", "--cached", "--others", "--exclude-standard"])
        .lines()
        .filter(|path| root().join(path).is_file())
        .map(str::to_string)
        .collect()
}

#[test]
fn the_arrows_between_packages_hold() {
    let metadata =
        printed(env!("CARGO"), &["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let mut uses = BTreeMap::new();
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        assert_ne!(name, "core", "a package of this name would shadow Rust's own");
        assert_eq!(package["license"], "GPL-3.0-or-later", "{name}");
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let ours: BTreeSet<&str> = dependencies
            .iter()
            .filter(|dependency| dependency["path"].is_string())
            .filter_map(|dependency| dependency["name"].as_str())
            .collect();
        uses.insert(name, ours);
    }
    for (name, allowed) in ARROWS {
        let used = uses.remove(name).unwrap_or_else(|| panic!("no package {name}"));
        let stray: Vec<_> = used.iter().filter(|user| !allowed.contains(user)).collect();
        assert!(stray.is_empty(), "{name} must not depend on {stray:?}");
    }
    assert!(uses.is_empty(), "packages without a place in ARROWS: {:?}", uses.keys());
}

#[test]
fn core_reaches_no_tensor_library() {
    let reached = tree(&["-p", "cwm-core", "--all-features", "-e", "normal", "-f", "{p}"]);
    assert!(reached.len() > 10, "cargo tree says next to nothing: {reached:?}");
    let heavy: Vec<_> =
        reached.iter().filter(|name| HEAVY.iter().any(|start| name.starts_with(start))).collect();
    assert!(heavy.is_empty(), "{heavy:?}");
}

/// Tests and binaries built by different commands share their dependencies only if they ask for the same features.
#[test]
fn every_build_asks_for_the_same_features() {
    let all = tree(&["--workspace", "-e", "normal,build,dev", "-f", "{p} {f}"]);
    for selection in [
        ["--workspace", "-e", "normal,build", "-f", "{p} {f}"].as_slice(),
        &["-p", "cwm", "-e", "normal,build", "-f", "{p} {f}"],
        &["-p", "cwm-tests", "-e", "normal,build,dev", "-f", "{p} {f}"],
    ] {
        let other = tree(selection);
        let rebuilt: Vec<_> = other.difference(&all).collect();
        assert!(
            rebuilt.is_empty(),
            "{selection:?} builds these anew; see the aligned features in Cargo.toml: {rebuilt:#?}"
        );
    }
}

#[test]
fn every_dependency_has_a_fitting_licence() {
    for line in tree(&["--workspace", "-e", "normal,build,dev", "-f", "{p}|{l}"]) {
        let (package, licence) = line.split_once('|').expect("package|licence");
        assert!(fits(licence), "{package} is under `{licence}`");
    }
}

/// Whether an SPDX expression can be met by [`LICENCES`]: some alternative whose every part is in the list.
fn fits(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut words: Vec<&str> = Vec::new();
    for word in expression.split_whitespace() {
        let opened = word.trim_start_matches('(');
        words.extend(std::iter::repeat_n("(", word.len() - opened.len()));
        let name = opened.trim_end_matches(')');
        words.push(name);
        words.extend(std::iter::repeat_n(")", opened.len() - name.len()));
    }
    let mut words = words.into_iter().peekable();
    let met = any_of(&mut words);
    met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::vec::IntoIter<&'a str>>;

fn any_of(words: &mut Words<'_>) -> bool {
    let mut met = all_of(words);
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words);
    }
    met
}

fn all_of(words: &mut Words<'_>) -> bool {
    let mut met = one(words);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words);
    }
    met
}

fn one(words: &mut Words<'_>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let met = any_of(words);
        return words.next_if_eq(&")").is_some() && met;
    }
    let met = words.next().is_some_and(|name| LICENCES.contains(&name));
    // Exceptions only ever permit more.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    met
}

#[test]
fn licence_expressions_are_read_as_written() {
    for (expression, expected) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("Proprietary OR MIT", true),
        ("Proprietary AND MIT", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(Proprietary OR SSPL-1.0) AND MIT", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("", false),
    ] {
        assert_eq!(fits(expression), expected, "{expression}");
    }
}

#[test]
fn files_keep_to_one_concept() {
    let mut long = Vec::new();
    for path in files().iter().filter(|path| path.ends_with(".rs")) {
        let text = fs::read_to_string(root().join(path)).expect("a Rust file");
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
        if lines > LINES_MAX && !LONG_FILES.iter().any(|(known, _)| known == path) {
            long.push(format!("{path}: {lines} lines"));
        }
    }
    assert!(long.is_empty(), "longer than {LINES_MAX} lines: {long:#?}");
}

#[test]
fn files_are_small() {
    for path in files() {
        let bytes = fs::metadata(root().join(&path)).expect("a file in git").len();
        assert!(bytes < FILE_BYTES_MAX, "{path} has {bytes} bytes");
    }
}

#[test]
fn texts_speak_of_the_project_alone() {
    // In pieces, so that this file passes its own test.
    let strangers = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("static.", "crates.io"),
        concat!("index.", "crates.io"),
        concat!("py", "pi.org"),
        concat!("python", "hosted.org"),
        concat!("registry.", "npmjs"),
        concat!("proxy.", "golang"),
    ];
    let mut found = Vec::new();
    for path in files() {
        // Binary files count too: a checkpoint's metadata is text.
        let content = fs::read(root().join(&path)).expect("a file in git");
        for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let holds = |word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
            if let Some(word) = strangers.iter().find(|word| holds(word)) {
                found.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
