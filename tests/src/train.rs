//! `cwm train`: resuming bit for bit, stopping on signals, diverging, and what it says of wrong settings.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use cwm_tests::cwm::{Output, command, cwm};

/// A dataset of random games, a config of a tiny model, and a place for runs.
struct Lab {
    dir: TempDir,
}

impl Lab {
    fn new(extra: &str) -> Self {
        Self::of(
            "family = \"transformer\"\nd_model = 16\nn_layers = 1\nn_heads = 2\n",
            &format!("batch_size = 4\nepochs = 2\n{extra}"),
        )
    }

    /// A lab of the given model.
    fn of(model: &str, train: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        cwm(["data", "random", "--games", "60", "--seed", "3", "--out", data.to_str().unwrap()])
            .expect_done();
        // The 0.5 % split of so few games is empty: training must cope without validation.
        let config = format!(
            "[model]\n{model}\n\
             [optimizer]\nlr = 0.003\n\n[schedule]\nwarmup_steps = 3\n\n\
             [train]\ndata = {:?}\nlog_every = 1\nsave_every = 5\n{train}\n",
            data.display()
        );
        fs::write(dir.path().join("tiny.toml"), config).unwrap();
        Lab { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn train(&self, runs: &str, args: &[&str]) -> Output {
        cwm(self.args(runs, args))
    }

    fn args(&self, runs: &str, args: &[&str]) -> Vec<String> {
        let config = self.path("tiny.toml");
        let runs = self.path(runs);
        let mut all = vec!["train", config.to_str().unwrap(), "--runs", runs.to_str().unwrap()];
        all.extend(args);
        all.into_iter().map(str::to_string).collect()
    }

    /// The one run under `runs`.
    fn run(&self, runs: &str) -> PathBuf {
        let mut found: Vec<PathBuf> =
            fs::read_dir(self.path(runs)).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(found.len(), 1, "one run under {runs}: {found:?}");
        found.pop().unwrap()
    }
}

/// Parameters, moments and counts of both runs' last checkpoints are equal, bit for bit.
#[track_caller]
fn assert_same_state(a: &Path, b: &Path) {
    let state = |run: &Path| fs::read(run.join("checkpoints/latest/training.state")).unwrap();
    let (left, right) = (state(a), state(b));
    let differing = left.iter().zip(&right).filter(|(l, r)| l != r).count();
    assert!(left == right, "{} and {} bytes, {differing} of them differ", left.len(), right.len());
}

/// Records of `metrics.jsonl` without what depends on the clock.
fn losses(run: &Path) -> Vec<(u64, String)> {
    fs::read_to_string(run.join("metrics.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|r| (r["step"].as_u64().unwrap(), format!("{} {}", r["loss"], r["grad_norm"])))
        .collect()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one_bit_for_bit() {
    resumed_equals_uninterrupted(&Lab::new(""));
}

#[test]
fn a_resumed_transition_machine_equals_an_uninterrupted_one_bit_for_bit() {
    let model =
        "family = \"transition\"\ncontext_hidden = 16\ncontext_width = 8\ncell_hidden = 8\n";
    let lab = Lab::of(model, "batch_size = 600\nepochs = 1\nmax_steps = 40\n");
    resumed_equals_uninterrupted(&lab);

    // What it leaves behind can be graded, looked at and made small.
    let run = lab.run("whole");
    let run = run.to_str().unwrap();
    let inspected = cwm(["inspect", run]).expect_done();
    assert!(inspected.stdout.contains("transition"), "{}", inspected.stdout);
    assert!(inspected.stdout.contains("none: tokens are taken apart"), "{}", inspected.stdout);
    let out = lab.path("small");
    cwm(["export", run, "--out", out.to_str().unwrap(), "--dtype", "f16"]).expect_done();
    let card = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.contains("no sequence mixer"), "{card}");
    let out = out.to_str().unwrap();
    cwm(["evaluate", out, "--random", "2"]).expect_done();
    cwm(["predict", out, "--uci", "e2e4 e7e5"]).expect_done();
}

fn resumed_equals_uninterrupted(lab: &Lab) {
    lab.train("whole", &[]).expect_done();
    let whole = lab.run("whole");
    assert!(whole.join("DONE").exists());
    for file in ["config.toml", "environment.json", "summary.json", "metrics.jsonl"] {
        assert!(whole.join(file).exists(), "{file} is missing");
    }

    // As a killed process leaves it: no end, and a checkpoint from the middle of the second epoch.
    lab.train("cut", &[]).expect_done();
    let cut = lab.run("cut");
    fs::remove_file(cut.join("DONE")).unwrap();
    let mut kept = Vec::new();
    for entry in fs::read_dir(cut.join("checkpoints")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        match name.strip_prefix("step-").map(|step| step.parse::<u64>().unwrap()) {
            Some(step) if step > 25 => fs::remove_dir_all(&path).unwrap(),
            Some(step) => kept.push(step),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    assert!(kept.contains(&25), "{kept:?}");
    let resumed = lab.train("cut", &[]).expect_done();
    assert!(resumed.stderr.contains("resuming at step 25"), "{}", resumed.stderr);
    assert_eq!(lab.run("cut"), cut, "the same run goes on");
    assert_same_state(&cut, &whole);
    assert_eq!(losses(&cut), losses(&whole));

    let again = lab.train("cut", &["--resume", "auto"]).expect_done();
    assert!(again.stderr.contains("already done"), "{}", again.stderr);
    assert_same_state(&cut, &whole);
}

#[test]
fn an_extended_run_equals_one_that_had_the_steps_from_the_start() {
    let lab = Lab::new("");
    // One schedule for all: else the steps in all would set its length.
    let steps = |steps: &'static str| ["--set", "schedule.decay_steps=20", "--max-steps", steps];
    lab.train("whole", &steps("20")).expect_done();
    let (whole, begun) = (lab.run("whole"), {
        lab.train("begun", &steps("10")).expect_done();
        lab.run("begun")
    });
    let before = fs::read(begun.join("checkpoints/latest/training.state")).unwrap();
    let (begun, runs) = (begun.to_str().unwrap(), lab.path("longer"));
    let runs = runs.to_str().unwrap();
    let extend = ["train", "--extend", begun, "--max-steps", "20", "--runs", runs];
    let output = cwm(extend).expect_done();
    assert!(output.stderr.contains("extending 10 steps of"), "{}", output.stderr);
    let longer = lab.run("longer");
    assert_same_state(&longer, &whole);
    assert_eq!(losses(&longer), losses(&whole));
    let state = fs::read(Path::new(begun).join("checkpoints/latest/training.state")).unwrap();
    assert!(state == before, "the run that was extended has changed");
    let inspected = cwm(["inspect", longer.to_str().unwrap()]).expect_done().stdout;
    let told = inspected.lines().find(|line| line.contains("extends"));
    assert!(told.is_some_and(|line| line.contains("10 steps of")), "{inspected}");

    // The same command finds it again, and so does resuming by name.
    let again = cwm(extend).expect_done();
    assert!(again.stderr.contains("already done"), "{}", again.stderr);
    let again = cwm(["train", "--resume", longer.to_str().unwrap()]).expect_done();
    assert!(again.stderr.contains("already done"), "{}", again.stderr);

    // Killed before its first checkpoint, it does not begin from nothing: the same command begins it again where it began.
    fs::remove_file(longer.join("DONE")).unwrap();
    fs::remove_dir_all(longer.join("checkpoints")).unwrap();
    fs::create_dir(longer.join("checkpoints")).unwrap();
    let resumed = cwm(["train", "--resume", longer.to_str().unwrap()]).expect_code(3);
    assert!(resumed.stderr.contains("no checkpoint yet"), "{}", resumed.stderr);
    cwm(extend).expect_done();
    assert_same_state(&lab.run("longer"), &whole);

    for (args, said) in [
        (&["--max-steps", "10"][..], "stands at step 10 of 10"),
        (&["--max-steps", "20", "--seed", "4"], "another `train.seed`"),
        (&["--max-steps", "20", "--set", "model.d_model=32"], "another `model.d_model`"),
        (&["--max-steps", "20", "--resume", begun], "either resumed or extended"),
    ] {
        let output = cwm([&["train", "--extend", begun][..], args].concat()).expect_code(2);
        assert!(output.stderr.contains(said), "{}", output.stderr);
    }
    let other = lab.path("other");
    let other = other.to_str().unwrap();
    cwm(["data", "random", "--games", "60", "--seed", "4", "--out", other]).expect_done();
    let args = ["train", "--extend", begun, "--max-steps", "20", "--data", other];
    assert!(cwm(args).expect_code(2).stderr.contains("other data"));
}

#[test]
fn the_thread_count_does_not_change_the_result() {
    let lab = Lab::new("max_steps = 8");
    lab.train("many", &[]).expect_done();
    let one = command(lab.args("one", &[])).env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert!(one.status.success());
    assert_same_state(&lab.run("one"), &lab.run("many"));
}

#[cfg(unix)]
#[test]
fn a_signal_writes_a_checkpoint_and_the_run_goes_on_from_it() {
    let lab = Lab::new("max_steps = 1000000");
    let mut child = command(lab.args("runs", &[]))
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let begun = || {
        let log = fs::read_dir(lab.path("runs")).ok()?.next()?.ok()?.path().join("metrics.jsonl");
        Some(fs::read_to_string(log).ok()?.lines().count() >= 3)
    };
    while begun() != Some(true) {
        assert!(started.elapsed() < Duration::from_secs(60), "training does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    let run = lab.run("runs");
    let stopped = losses(&run).last().unwrap().0;

    // What it says to do next is done as it stands; the second try stops again, later than the first.
    let next = stderr.lines().find_map(|line| line.strip_prefix("resume: cwm ")).unwrap();
    assert!(next.contains(run.to_str().unwrap()), "{stderr}");
    let mut second = command(next.split(' '));
    child = second.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while losses(&run).last().unwrap().0 <= stopped + 2 {
        assert!(started.elapsed() < Duration::from_secs(60), "the resumed run does not go on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-USR1", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn divergence_stops_with_its_own_code_and_names_the_games() {
    let lab = Lab::new("max_steps = 60\nrollback_after = 2\nstop_after = 6\nsnapshot_every = 1");
    let output = lab.train("runs", &["--set", "optimizer.lr=1e30"]).expect_code(5);
    assert!(output.stderr.contains("non-finite"), "{}", output.stderr);
    let run = lab.run("runs");
    assert!(run.join("FAILED").exists() && !run.join("DONE").exists());
    let log = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    assert!(log.contains("\"kind\":\"skipped\"") && log.contains("cwm_random_"), "{log}");
    assert!(log.contains("\"rolled_back\":true"), "{log}");
}

#[test]
fn a_dry_run_names_every_value_with_its_source_and_touches_nothing() {
    let lab = Lab::new("");
    let output =
        command(lab.args("runs", &["--dry-run", "--set", "optimizer.lr=0.5", "--seed", "9"]))
            .env("CWM_TRAIN_LOG_EVERY", "7")
            .output()
            .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let row = |key: &str| {
        let line = stdout.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("optimizer.lr"), "optimizer.lr 0.5 --set");
    assert_eq!(row("train.seed"), "train.seed 9 --seed");
    assert_eq!(row("train.log_every"), "train.log_every 7 $CWM_TRAIN_LOG_EVERY");
    assert_eq!(row("train.keep_last"), "train.keep_last 3 default");
    assert!(row("model.d_model").ends_with("tiny.toml:3"), "{stdout}");
    assert!(stdout.contains("% bucketed"), "{stdout}");
    assert!(!lab.path("runs").exists());
}

#[test]
fn wrong_settings_are_named_with_the_nearest_right_one() {
    let lab = Lab::new("");
    let cases: [(&[&str], i32, &str, &str); 6] = [
        (&["train", "transformer-d12"], 2, "transformer-d12", "transformer-d128"),
        (&["train", "transformer-d128"], 2, "no dataset", "--data"),
        (
            &["train", "transformer-d128", "--set", "optimizer.lrr=1"],
            2,
            "optimizer.lrr",
            "optimizer.lr",
        ),
        (&["train", "transformer-d128", "--set", "train.epochs=lots"], 2, "train.epochs", ""),
        (&["train", "transformer-d128", "--data", "/nowhere"], 3, "/nowhere", ""),
        (&["train", "transformer-d128", "--device", "abacus"], 4, "abacus", "cpu"),
    ];
    for (args, code, what, hint) in cases {
        let output = cwm(args).expect_code(code);
        assert!(output.stderr.contains(what), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(hint), "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty());
    }
    fs::write(lab.path("bad.toml"), "preset = \"transformer-d128\"\n[train]\n\nbatchsize = 3\n")
        .unwrap();
    let output = cwm(["train", lab.path("bad.toml").to_str().unwrap()]).expect_code(2);
    assert!(output.stderr.contains("bad.toml:4"), "{}", output.stderr);
    assert!(output.stderr.contains("train.batch_size"), "{}", output.stderr);

    let output = cwm(["train", "--resume", "auto"]).expect_code(2);
    assert!(output.stderr.contains("no preset or config file"), "{}", output.stderr);

    // Settings that a run was not started with do not resume it.
    lab.train("runs", &["--max-steps", "5"]).expect_done();
    let run = lab.run("runs");
    let output =
        lab.train("runs", &["--max-steps", "6", "--resume", run.to_str().unwrap()]).expect_code(2);
    assert!(output.stderr.contains("other settings"), "{}", output.stderr);
}

#[test]
fn parts_of_the_transition_machine_and_of_the_data_are_left_out_by_config() {
    let lab = Lab::of("family = \"transition\"\n", "batch_size = 64\nmax_steps = 5\n");
    let absolute = ["--set", "model.relative_positions=false", "--set", "train.max_games=7"];
    let bytes = ["--set", "model.clocks=bytes", "--set", "sampling.color_swap=0"];
    let args: Vec<&str> = absolute.into_iter().chain(bytes).collect();
    let dry = lab.train("runs", &[&args[..], &["--dry-run"]].concat()).expect_done().stdout;
    assert!(dry.contains("\n7 training games"), "{dry}");
    lab.train("runs", &args).expect_done();
    let run = lab.run("runs");
    let said = cwm(["inspect", run.to_str().unwrap(), "--format", "json"]).expect_done().stdout;
    assert!(said.contains("c160/d96/h64/absolute/byte-clocks"), "{said}");
    let config = fs::read_to_string(run.join("checkpoints/latest/config.json")).unwrap();
    assert!(config.contains("\"clocks\": \"bytes\""), "{config}");
    let card = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(card.contains("max_games = 7") && card.contains("color_swap = 0.0"), "{card}");
    let wrong = lab.train("runs", &["--set", "model.clocks=sundial"]).expect_code(2);
    assert!(wrong.stderr.contains("sundial"), "{}", wrong.stderr);
}
