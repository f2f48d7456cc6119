//! The shipped checkpoints keep what is told of them.

use std::{collections::BTreeMap, fs, path::PathBuf};

use cwm_core::report::{EvalReport, Share, TrackerKind};
use cwm_models::checkpoint::Checkpoint;
use cwm_tests::cwm::{cwm, root};

/// Folders of the shipped checkpoints, by name.
fn folders() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(root().join("models/checkpoints")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    paths.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path)).collect()
}

/// `eval.json` is of the very weights beside it, and grading again gives its numbers, but for ties that another processor may see
/// fall otherwise.
#[test]
fn scores_of_the_shipped_checkpoints_are_theirs() {
    let folders = folders();
    let args = ["evaluate", "--human-sample", "--format", "json"];
    let said = cwm(args.iter().copied().chain(folders.keys().map(String::as_str))).expect_done();
    let again = EvalReport::from_json(&said.stdout).unwrap();
    for (name, folder) in &folders {
        let told = fs::read_to_string(folder.join("eval.json")).unwrap();
        let told = EvalReport::from_json(&told).unwrap();
        let [tracker] = &told.trackers[..] else { panic!("{name}: one tracker") };
        let TrackerKind::Model(model) = &tracker.kind else { panic!("{name}: a model") };
        let weights = fs::read(folder.join("model.safetensors")).unwrap();
        let checkpoint = Checkpoint::read(&weights, None).unwrap();
        assert_eq!((&tracker.name, &model.sha256), (name, &checkpoint.info.sha256));
        let sets: Vec<&str> = told.evaluations.iter().map(|e| e.dataset.as_str()).collect();
        assert_eq!(sets, ["held-out-human", "classics", "random-uniform"], "{name}");

        let classics = &told.evaluations[1];
        let mut again = again.evaluations.iter().filter(|e| e.tracker == tracker.name);
        let again = again.next().unwrap_or_else(|| panic!("{name} was not graded"));
        assert_eq!(again.moves_sha256, classics.moves_sha256, "{name}");
        let near = |a: &Share, b: &Share| {
            assert_eq!(a.denominator, b.denominator, "{name}");
            assert!(
                a.numerator.abs_diff(b.numerator) <= b.denominator / 1000,
                "{name}: {a:?}, {b:?}"
            );
        };
        near(&again.exact_state_accuracy, &classics.exact_state_accuracy);
        near(&again.labelwise_accuracy, &classics.labelwise_accuracy);
    }
}

/// What sets the sequence mixers apart is the mixer: games, batches and settings are the same.
#[test]
fn the_shipped_sequence_mixers_were_trained_alike() {
    let mut recipes = BTreeMap::new();
    for (name, folder) in folders().into_iter().filter(|(name, _)| name != "transition") {
        let weights = fs::read(folder.join("model.safetensors")).unwrap();
        let checkpoint = Checkpoint::read(&weights, None).unwrap();
        let mut facts = checkpoint.info.training.unwrap();
        for own in ["train.name", "optimizer.no_decay"] {
            facts.settings.remove(own);
        }
        facts.settings.retain(|key, _| !key.starts_with("model."));
        // Each extends a run of its own.
        let (steps, _) = facts.settings["train.extends"].split_once(" steps of ").unwrap();
        facts.settings.insert("train.extends".into(), steps.into());
        let read = (facts.steps, facts.games_seen, facts.positions_seen, facts.seed);
        recipes.insert(name, (read, facts.dataset.and_then(|data| data.sha256), facts.settings));
    }
    let families = [
        "gated-deltanet",
        "gated-deltanet-positive",
        "mamba2",
        "mamba3",
        "slice",
        "slice-diagonal",
        "transformer",
    ];
    assert_eq!(recipes.keys().cloned().collect::<Vec<_>>(), families.map(|f| format!("{f}-d128")));
    let first = recipes.values().next().unwrap();
    assert!(first.0.0 >= 60_000 && first.1.is_some() && first.2.len() > 10, "{first:?}");
    for (name, recipe) in &recipes {
        assert_eq!(recipe, first, "{name}");
    }
}

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
