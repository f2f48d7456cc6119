//! The shipped checkpoints keep what is told of them.

use cwm_core::report::{EvalReport, TrackerKind};
use cwm_tests::cwm::cwm;

/// Every state of the classics and of these random games, named exactly by the transition machine on its own answers.
#[test]
fn the_shipped_transition_machine_names_every_state() {
    let args = ["evaluate", "transition", "--human-sample", "--random", "100", "--format", "json"];
    let said = cwm(args).expect_done();
    let report = EvalReport::from_json(&said.stdout).unwrap();
    let TrackerKind::Model(model) = &report.trackers[0].kind else { panic!("a model") };
    assert!(model.structured && model.family == "transition");
    assert_eq!(report.evaluations.len(), 2);
    for evaluation in &report.evaluations {
        let exact = &evaluation.exact_state_accuracy;
        assert_eq!(exact.numerator, exact.denominator, "{}", evaluation.dataset);
        assert!(evaluation.games >= 44);
    }
}

/// Every rule stratum is as easy to it as uniform play.
#[test]
fn the_shipped_transition_machine_knows_the_rare_rules() {
    let args =
        ["evaluate", "transition", "--random", "12", "--policy", "all", "--min-exact", "100"];
    let said = cwm(args).expect_done();
    assert_eq!(said.stdout.matches("transition (structured)").count(), 8, "{}", said.stdout);
}

#[test]
fn structured_models_are_marked_wherever_their_scores_stand() {
    let args =
        ["evaluate", "transition", "naive-mover", "--human-sample", "--limit", "3", "--details"];
    let with =
        |format: &str| cwm(args.iter().copied().chain(["--format", format])).expect_done().stdout;
    for format in ["text", "markdown"] {
        let said = with(format);
        // The summary, groups, bins, first mistakes, and a note that no game is wrong.
        assert_eq!(said.matches("transition (structured)").count(), 5, "{said}");
        let words: Vec<&str> = said.split_whitespace().collect();
        assert!(words.join(" ").contains("do not compare with sequence mixers"), "{said}");
        assert!(!said.contains("naive-mover (structured)"), "{said}");
    }
    assert!(with("json").contains("\"structured\": true"));
    let tsv = with("tsv");
    let column = |line: usize| tsv.lines().nth(line).and_then(|l| l.split('\t').nth(21));
    assert_eq!(
        (column(0), column(1), column(2)),
        (Some("structured"), Some("true"), Some("false"))
    );
    let plain =
        cwm(["evaluate", "naive-mover", "--human-sample", "--limit", "3"]).expect_done().stdout;
    assert!(!plain.contains("structured"), "{plain}");
}

#[test]
fn other_feedback_stands_under_a_name_of_its_own() {
    for (feedback, name) in
        [("truth", "transition, truth fed back"), ("soft", "transition, soft fed back")]
    {
        let args =
            ["evaluate", "transition", "--human-sample", "--limit", "3", "--feedback", feedback];
        let said = cwm(args).expect_done();
        assert!(said.stdout.contains(name), "{}", said.stdout);
    }
    for subject in ["transformer-d128", "oracle"] {
        let args = ["evaluate", subject, "--human-sample", "--feedback", "truth"];
        let said = cwm(args).expect_code(2);
        assert!(said.stderr.contains("has no truth feedback"), "{}", said.stderr);
    }
}
