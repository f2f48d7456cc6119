//! `cwm train`: one training job, new or resumed.

use std::path::{Path, PathBuf};

use cwm_models::device::DeviceChoice;

use crate::{
    exit::{Exit, Failure},
    progress::Progress,
    train::{
        job::{Job, Resume},
        settings::Sources,
    },
};

const EXAMPLES: &str = "\
Values are merged in this order, later ones winning: defaults, preset, config file, CWM_SECTION_KEY environment \
variables, --set, flags. A run lives in RUNS/<UTC>-<name>-<hash of settings and data>/. Ctrl-C, SIGTERM and SIGUSR1 \
write a checkpoint and stop (exit code 75); a second Ctrl-C quits at once.

Examples:
  cwm train transformer-d128 --data data/human
  cwm train transformer-d128 --data data/human --set optimizer.lr=0.001 --max-steps 20000 --dry-run
  cwm train my-run.toml --resume never
  cwm train --extend runs/20260131T120000Z-my-run-01234567 --max-steps 60000";

/// Arguments of `cwm train`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A preset's name or a config file (TOML); with `--resume RUN` or `--extend RUN`, that run's own unless another is given
    #[arg(value_name = "PRESET|CONFIG", required_unless_present_any = ["resume", "extend"])]
    config: Option<String>,

    /// Dataset directory, as made by `cwm data`
    #[arg(long, value_name = "DIR")]
    data: Option<String>,

    /// Set a config key, e.g. `optimizer.lr=0.001`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Optimisation steps in all; 0: as many as the epochs have [default: the config's]
    #[arg(long, value_name = "STEPS")]
    max_steps: Option<u64>,

    /// Seed of weights, order and dropout [default: the config's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// `bucketed` (by length, little padding) or `reference` (shuffled shards, games as stored) [default: the config's]
    #[arg(long, value_name = "MODE")]
    batching: Option<String>,

    /// Run name [default: the preset's or the file's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Directory that runs live in
    #[arg(long, default_value = "runs", value_name = "DIR")]
    runs: PathBuf,

    /// `auto`: go on with the newest run of the same settings and data; a run directory; or `never`
    #[arg(long, default_value = "auto", value_name = "auto|RUN|never")]
    resume: String,

    /// Begin a new run where this one stands, with the steps and the schedule that are given now; the old one stays as it is
    #[arg(long, value_name = "RUN")]
    extend: Option<PathBuf>,

    /// `cpu`, `wgpu`, `vulkan` or `cuda`
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: String,

    /// Print every value with its source, and what would be trained; touch nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `cwm train`.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let text = |value: &Option<String>| value.clone().map(toml::Value::String);
    let number = |flag: &str, value: Option<u64>| -> Result<Option<toml::Value>, Failure> {
        let fit =
            |n| i64::try_from(n).map_err(|_| Failure::usage(format!("{flag} {n} is too large")));
        Ok(value.map(fit).transpose()?.map(toml::Value::Integer))
    };
    let flags = [
        ("train.data", text(&args.data), "--data"),
        ("train.max_steps", number("--max-steps", args.max_steps)?, "--max-steps"),
        ("train.seed", number("--seed", args.seed)?, "--seed"),
        ("train.batching", text(&args.batching), "--batching"),
        ("train.name", text(&args.name), "--name"),
    ];
    let resume = match args.resume.as_str() {
        "auto" => Resume::Auto,
        "never" => Resume::Never,
        path => Resume::Run(path.into()),
    };
    if args.extend.is_some() && matches!(resume, Resume::Run(_)) {
        let failure = Failure::usage("a run is either resumed or extended");
        return Err(failure.hint("a stopped extension goes on with `--resume RUN` alone").into());
    }
    let of_run = |run: &Path| run.join("config.toml").to_string_lossy().into_owned();
    let base = match (args.config, &resume, &args.extend) {
        (Some(config), ..) => config,
        (None, Resume::Run(run), _) | (None, _, Some(run)) => of_run(run),
        (None, ..) => return Err(Failure::usage("no preset or config file to train").into()),
    };
    let sources = Sources {
        base,
        env: std::env::vars().filter(|(name, _)| name.starts_with("CWM_")).collect(),
        assignments: args.set,
        flags: flags
            .into_iter()
            .filter_map(|(key, value, flag)| Some((key, value?, flag)))
            .collect(),
    };
    let job = Job {
        resolved: sources.resolve()?,
        root: args.runs,
        resume,
        extend: args.extend,
        device: args.device.parse::<DeviceChoice>().map_err(|e| Failure::new(Exit::Device, e))?,
        command: std::env::args().collect(),
    };
    if args.dry_run {
        job.dry_run(&mut std::io::stdout().lock())?;
        return Ok(Exit::Done);
    }
    job.run(progress)
}
