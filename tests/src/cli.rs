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
