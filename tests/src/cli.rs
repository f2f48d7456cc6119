//! The command line as a whole: exit codes, streams, help.

use cwm_tests::cwm::cwm;

#[test]
fn an_unknown_command_is_a_usage_error_with_a_suggestion() {
    let said = cwm(["dta"]).expect_code(2);
    assert_eq!(said.stdout, "", "errors go to stderr");
    assert!(said.stderr.contains("similar subcommand exists: 'data'"), "{}", said.stderr);
}

#[test]
fn dependency_rules_keep_spaces_in_paths() {
    assert_eq!(cwm_tests::cwm::words_of_rule("/a\\ b/c.rs /d.rs\n"), ["/a b/c.rs", "/d.rs"]);
}

#[test]
fn the_burn_version_is_the_one_in_the_lock_file() {
    let lock = std::fs::read_to_string(cwm_tests::cwm::root().join("Cargo.lock")).unwrap();
    let (_, after) = lock.split_once("name = \"burn\"\nversion = \"").expect("burn is locked");
    let (version, _) = after.split_once('"').expect("a quoted version");
    assert_eq!(cwm_models::backend::BURN_VERSION, version);
}
