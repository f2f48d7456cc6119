//! `cwm evaluate`: grade checkpoints and baselines on games.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cwm_core::{
    data::Split,
    metrics::{Resampling, WorstGames},
    report::{Detail, EvalReport, markdown, text, tsv},
};

use cwm_models::feedback::Feedback;

use crate::{
    cmd::policy::{self, Choice},
    evaluate::{GameSource, Job, Subject, grade_all, save::save, subject::device_of},
    exit::{Exit, Failure},
    output,
    progress::Progress,
    train::signals::Stop,
};

const EXAMPLES: &str = "\
Examples:
  cwm evaluate models/checkpoints/transformer-d128 --baselines --random 1000 --seed 0
  cwm evaluate runs/my-run --data real=test-real --data random=test-random --out scores
  cwm evaluate naive-mover+rights+ep --random 500 --format json | jq .evaluations
  cwm evaluate my.safetensors --baselines --random 500 --policy all
  cwm evaluate my.safetensors --data mine=games.pgn.zst --details
  cwm evaluate my.safetensors --human-sample --min-exact 95 || echo 'worse than it was'

Baselines: start-board, naive-mover, naive-mover+rights, naive-mover+rights+ep, oracle";

/// Arguments of `cwm evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Checkpoints (a folder, a safetensors file, a PyTorch file of the reference or the name of a shipped one) and
    /// baselines, by name
    #[arg(value_name = "SUBJECT")]
    subjects: Vec<String>,

    /// Grade all baselines as well
    #[arg(long)]
    baselines: bool,

    /// A dataset's directory, or a file of games (PGN or lines of UCI moves, plain or compressed), under the name that
    /// the report calls it; may be repeated
    #[arg(long, value_name = "NAME=PATH")]
    data: Vec<String>,

    /// The part of the datasets to grade on, by hash of the games' ids
    #[arg(long, value_enum, default_value_t, value_name = "SPLIT")]
    split: SplitArg,

    /// Grade on N games of random legal play, of each policy
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    random: Option<u64>,

    /// What the random moves are picked from: all legal moves, or those wanted wherever there are any; may be repeated
    /// or hold several, divided by commas [default: uniform]
    #[arg(long, value_name = "POLICY", value_delimiter = ',', requires = "random", value_parser = policy::several())]
    policy: Vec<Choice>,

    /// Seed of the random games
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,

    /// Leave out random games below this many full moves, i.e. twice as many plies
    #[arg(long, value_name = "MOVES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=300))]
    min_fullmoves: u32,

    /// Grade on the famous games that ship with cwm
    #[arg(long)]
    human_sample: bool,

    /// Grade on at most the first N games of each set; marks the report as a preview
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// What models that read their own last answer are given in its place; anything but `argmax` is an experiment, and the
    /// report says so
    #[arg(long, value_enum, default_value_t, value_name = "FEEDBACK")]
    feedback: FeedbackArg,

    /// Where networks run: cpu, wgpu, vulkan or cuda, as far as the build has them
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    /// Also print accuracy by label group and prefix bin, and first mistakes (text and markdown)
    #[arg(long)]
    details: bool,

    /// The worst games to list of each subject on each set: all in JSON, three with --details
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = worst)]
    worst: usize,

    /// Print every row that the paper published beside ours (text and markdown)
    #[arg(long)]
    paper: bool,

    /// Write report.json, report.md, summary.tsv, prefix_bins.tsv and charts (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Resamples of the 95 % intervals
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    resamples: u32,

    /// Fail with exit code 1 if a checkpoint (a baseline, if there is no checkpoint) names fewer than this many percent
    /// of states exactly on some set of games
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_exact: Option<f64>,
}

/// Formats of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// Tables for reading.
    #[default]
    Text,
    /// One JSON document: everything, with counts.
    Json,
    /// One line a grade, in the reference's columns.
    Tsv,
    /// Tables in Markdown.
    Markdown,
}

/// What is fed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum FeedbackArg {
    /// The most probable labels: the model's answer.
    #[default]
    Argmax,
    /// All classes, by their probabilities.
    Soft,
    /// The true labels: every step by itself.
    Truth,
}

/// Parts of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum SplitArg {
    /// Every game.
    #[default]
    All,
    /// The games that train.
    Train,
    /// The 0.5 % of games that validate.
    Validation,
}

fn worst(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(games) if games <= WorstGames::KEPT => Ok(games),
        _ => Err(format!("expected a whole number from 0 to {}", WorstGames::KEPT)),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 100".to_string()),
    }
}

/// Runs `cwm evaluate`.
///
/// # Errors
/// If a subject or games cannot be read, a tracker fails, or the report cannot be written.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let stop = Stop::listen()?;
    let subjects = subjects(&args, progress)?;
    let sources = sources(&args, progress, &stop)?;
    let resampling = Resampling { resamples: args.resamples, ..Resampling::default() };
    let job = Job { subjects, sources, resampling, worst_games: args.worst };
    let report = grade_all(&job, progress, &stop)?;

    let detail =
        Detail { breakdown: args.details, all_paper_rows: args.paper, ..Detail::default() };
    if let Some(dir) = &args.out {
        save(&report, dir, detail)?;
        progress.note(&format!("wrote the report and its charts to `{}`", dir.display()));
    }
    output::print(match args.format {
        Format::Text => text(&report, detail),
        Format::Json => report.to_json(),
        Format::Tsv => tsv::summary(&report),
        Format::Markdown => markdown(&report, detail),
    })?;
    if stop.requested() {
        progress.note("interrupted: the report holds what was graded by then");
        return Ok(Exit::Interrupted);
    }
    match args.min_exact {
        Some(least) => threshold(&report, &job, least, progress),
        None => Ok(Exit::Done),
    }
}

fn subjects(args: &Args, progress: &Progress) -> anyhow::Result<Vec<Subject>> {
    let device = device_of(&args.device)?;
    let feedback = match args.feedback {
        FeedbackArg::Argmax => Feedback::Argmax,
        FeedbackArg::Soft => Feedback::Soft,
        FeedbackArg::Truth => Feedback::Truth,
    };
    let mut subjects: Vec<Subject> = Vec::new();
    for argument in &args.subjects {
        let subject = Subject::from_argument(argument, device)?.with_feedback(feedback)?;
        subject.tell(progress);
        if subjects.iter().any(|other| other.info.name == subject.info.name) {
            let message = format!("two subjects are called `{}`", subject.info.name);
            return Err(Failure::usage(message).hint("name each once; rename one folder").into());
        }
        subjects.push(subject);
    }
    if args.baselines {
        for baseline in Subject::baselines() {
            if subjects.iter().all(|other| other.info.name != baseline.info.name) {
                subjects.push(baseline);
            }
        }
    }
    if subjects.is_empty() {
        return Err(Failure::usage("nothing to grade: name a checkpoint or a baseline")
            .hint("`cwm evaluate --baselines --random 100` grades the baselines")
            .into());
    }
    Ok(subjects)
}

fn sources(args: &Args, progress: &Progress, stop: &Stop) -> anyhow::Result<Vec<GameSource>> {
    let split = match args.split {
        SplitArg::All => Split::All,
        SplitArg::Train => Split::Train,
        SplitArg::Validation => Split::Validation,
    };
    let mut sources: Vec<GameSource> = Vec::new();
    for data in &args.data {
        let Some((name, dir)) =
            data.split_once('=').filter(|(n, d)| !n.is_empty() && !d.is_empty())
        else {
            return Err(Failure::usage(format!("`--data {data}` is not of the form NAME=PATH"))
                .hint(format!("for example `--data real={data}`"))
                .into());
        };
        let path = Path::new(dir);
        if path.is_dir() || !path.exists() {
            sources.push(GameSource::stored(name, path, split)?);
            continue;
        }
        if split != Split::All {
            let message = format!("`{dir}` is a file of games: it has no splits");
            return Err(Failure::usage(message)
                .hint("leave --split away, or make a dataset of it")
                .into());
        }
        sources.push(GameSource::file(name, path, args.limit)?);
    }
    if args.human_sample {
        sources.push(GameSource::classics()?);
    }
    if let Some(games) = args.random {
        let games = games.min(args.limit.unwrap_or(u64::MAX));
        let (seed, least) = (args.seed, args.min_fullmoves);
        let policies = policy::chosen(&args.policy);
        for &policy in &policies {
            policy::check_length(policy, least)?;
        }
        for policy in policies {
            sources.push(GameSource::random(policy, games, seed, least, progress, stop));
        }
    }
    if sources.is_empty() {
        return Err(Failure::usage("no games to grade on")
            .hint("name a dataset with --data NAME=PATH, or use --random N or --human-sample")
            .into());
    }
    for (i, source) in sources.iter().enumerate() {
        let name = &source.info.name;
        if sources[..i].iter().any(|other| other.info.name == *name) {
            return Err(Failure::usage(format!("two sets of games are called `{name}`")).into());
        }
    }
    Ok(sources.into_iter().map(|source| source.limited(args.limit)).collect())
}

fn threshold(
    report: &EvalReport,
    job: &Job,
    least: f64,
    progress: &Progress,
) -> anyhow::Result<Exit> {
    let any_model = job.subjects.iter().any(Subject::is_model);
    let judged = job.subjects.iter().filter(|subject| subject.is_model() || !any_model);
    let mut exit = Exit::Done;
    for subject in judged {
        for evaluation in report.evaluations.iter().filter(|e| e.tracker == subject.info.name) {
            let found = evaluation.exact_state_accuracy.value().unwrap_or(0.0) * 100.0;
            if found < least {
                progress.warn(&format!(
                    "`{}` names {found:.2} % of states exactly on `{}`, below --min-exact {least}",
                    evaluation.tracker, evaluation.dataset
                ));
                exit = Exit::CheckFailed;
            }
        }
    }
    Ok(exit)
}
