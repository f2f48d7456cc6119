//! From merged settings to a running job: data, run directory, trainer, banner.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::Context;
use chrono::{DateTime, Utc};
use cwm_core::data::{Games, Split, plan::Batching, transition::TransitionSampler};
use cwm_models::{
    checkpoint::{DatasetFacts, TrainingFacts},
    device::DeviceChoice,
};

use super::{
    environment::{Began, en_passant_name},
    extend::{Extension, Origin},
    feed::{FeedOptions, Source, lengths},
    learner::Learner,
    run::Run,
    run_dir::RunDir,
    settings::{Resolved, Settings},
    signals::Stop,
    standing::Standing,
};
use crate::{
    data::Dataset,
    exit::{Exit, Failure},
    progress::Progress,
    version,
};

/// Which run to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// The newest run of the same name and config, else a new one.
    Auto,
    /// Always a new one.
    Never,
    /// This run directory.
    Run(PathBuf),
}

/// A job with all that is not a setting.
#[derive(Debug)]
pub struct Job {
    /// The merged settings.
    pub resolved: Resolved,
    /// Where runs live.
    pub root: PathBuf,
    /// Which run to go on with.
    pub resume: Resume,
    /// The run where a new one begins.
    pub extend: Option<PathBuf>,
    /// The device.
    pub device: DeviceChoice,
    /// The command line, for the record.
    pub command: Vec<String>,
}

/// Games of a split and where its shards end.
struct Data {
    train: Games,
    shard_games: Vec<usize>,
    validation: Games,
}

impl Job {
    /// Prints every value with its source, the data's numbers and the length of the job; touches nothing.
    pub fn dry_run(&self, out: &mut impl std::io::Write) -> anyhow::Result<()> {
        let rows: Vec<(String, String, String)> = self
            .resolved
            .layers
            .iter()
            .map(|(key, value, source)| (key.to_string(), value.to_string(), source.to_string()))
            .collect();
        let key_width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
        let value_width = rows.iter().map(|r| r.1.len()).max().unwrap_or(0);
        for (key, value, source) in rows {
            writeln!(out, "{key:key_width$}  {value:value_width$}  {source}")?;
        }
        let settings = &self.resolved.settings;
        writeln!(out, "parameters  {}", settings.model.parameter_count())?;
        if !settings.train.data.is_empty() {
            let (dataset, data) = open_data(settings)?;
            let feed = feed_options(settings, &dataset, &data);
            let lengths = lengths(&data.train);
            let source = source(settings, &data, &lengths, &feed);
            for line in data_lines(&data, &source) {
                writeln!(out, "{line}")?;
            }
            let total_steps = total_steps(settings, source.epoch_batches());
            let data_sha256 = dataset.manifest().data_sha256();
            let extension = self.extension(&data_sha256, total_steps)?;
            let origin = self.origin(extension.as_ref())?;
            if let Some(origin) = &origin {
                writeln!(out, "begins behind {}", origin.text())?;
            }
            let hash = settings.hash(&data_sha256, origin.as_ref())?;
            writeln!(out, "config hash {hash}")?;
        }
        Ok(())
    }

    /// Trains.
    pub fn run(&self, progress: &Progress) -> anyhow::Result<Exit> {
        let settings = &self.resolved.settings;
        if settings.train.data.is_empty() {
            return Err(Failure::usage("no dataset given")
                .hint("name one with `--data DIR`; `cwm data prepare` makes one")
                .into());
        }
        let stop = Stop::listen()?;
        let (dataset, data) = open_data(settings)?;
        let feed = feed_options(settings, &dataset, &data);
        let lengths = lengths(&data.train);
        let source = source(settings, &data, &lengths, &feed);
        let epoch_batches = source.epoch_batches();
        let total_steps = total_steps(settings, epoch_batches);
        let data_sha256 = dataset.manifest().data_sha256();
        let extension = self.extension(&data_sha256, total_steps)?;
        let origin = self.origin(extension.as_ref())?;
        let hash = settings.hash(&data_sha256, origin.as_ref())?;

        let mut trainer = self.trainer(total_steps)?;
        let (dir, standing) = self.open_run(&hash, &mut trainer, progress)?;
        if dir.is_done() {
            progress.note(&format!("already done: {}", dir.path().display()));
            progress.note("`--resume never` trains anew");
            return Ok(Exit::Done);
        }
        let standing = match standing {
            Some(standing) => {
                progress.note(&format!("resuming at step {}", standing.step));
                standing
            }
            None => {
                let began = Began {
                    command: &self.command,
                    device: self.device.to_string(),
                    threads: threads(),
                    total_steps,
                    extends: origin.as_ref(),
                };
                began.write(&dir, settings, &dataset)?;
                match &extension {
                    Some(extension) => {
                        progress.note(&format!("extending {}", extension.origin().text()));
                        extension.begin(&dir, &mut trainer, |line| progress.note(line))?
                    }
                    None => Standing::default(),
                }
            }
        };
        if origin.as_ref().is_some_and(|origin| standing.step < origin.step) {
            let path = dir.path().display();
            return Err(Failure::data(format!("`{path}` has no checkpoint yet to go on from"))
                .hint("begin it again with the `--extend` that it was begun with")
                .into());
        }
        progress.note(&format!(
            "{} {}: {} parameters, device {}, seed {}",
            settings.model.family(),
            settings.model.size(),
            settings.model.parameter_count(),
            self.device,
            settings.train.seed
        ));
        for line in data_lines(&data, &source) {
            progress.note(&line);
        }
        let state_bytes = trainer.save_state().len();
        progress.note(&format!(
            "{total_steps} steps, {:.1} MB of weights and moments, run {}",
            state_bytes as f64 / 1e6,
            dir.path().display()
        ));
        let facts = self.facts(&dataset, data_sha256, data.train.len(), origin.as_ref());
        let run = Run {
            settings: &settings.train,
            dir,
            train: &data.train,
            source: &source,
            validation: &data.validation,
            en_passant: feed.en_passant,
            facts: &facts,
            total_steps,
            epoch_batches,
        };
        run.train(&mut trainer, standing, &stop, progress)
    }

    fn extension(&self, data_sha256: &str, total_steps: u64) -> anyhow::Result<Option<Extension>> {
        let open = |path: &PathBuf| {
            Extension::open(path, &self.resolved.settings, data_sha256, total_steps)
        };
        self.extend.as_ref().map(open).transpose()
    }

    /// Where the run begins: said by the command line, or by the run that is gone on with.
    fn origin(&self, extension: Option<&Extension>) -> anyhow::Result<Option<Origin>> {
        match (extension, &self.resume) {
            (Some(extension), _) => Ok(Some(extension.origin().clone())),
            (None, Resume::Run(path)) => Origin::of(&RunDir::open(path)?),
            (None, _) => Ok(None),
        }
    }

    /// What the checkpoints of this job tell of it from the start.
    fn facts(
        &self,
        dataset: &Dataset,
        sha256: String,
        games: usize,
        origin: Option<&Origin>,
    ) -> TrainingFacts {
        let name = dataset.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let settings = self.resolved.layers.iter().filter(|(key, ..)| *key != "train.data");
        TrainingFacts {
            dataset: Some(DatasetFacts {
                name,
                description: None,
                games: Some(games as u64),
                sha256: Some(sha256),
                en_passant: Some(en_passant_name(dataset.spec().en_passant).to_string()),
            }),
            device: Some(format!("{} ({} threads)", self.device, threads())),
            tool: Some(format!("cwm {}", *version::SHORT)),
            seed: Some(self.resolved.settings.train.seed),
            settings: settings
                .map(|(key, value, _)| (key.to_string(), value.to_string()))
                .chain(origin.map(|origin| ("train.extends".to_string(), origin.text())))
                .collect(),
            ..TrainingFacts::default()
        }
    }

    fn trainer(&self, total_steps: u64) -> anyhow::Result<Learner> {
        let settings = &self.resolved.settings;
        let mut schedule = settings.schedule.clone();
        if schedule.decay_steps == 0 {
            schedule.decay_steps = total_steps;
        }
        Learner::new(settings, &schedule, &self.device)
    }

    /// The run to work in, with its standing if it has a checkpoint.
    fn open_run(
        &self,
        hash: &str,
        trainer: &mut Learner,
        progress: &Progress,
    ) -> anyhow::Result<(RunDir, Option<Standing>)> {
        let name = &self.resolved.settings.train.name;
        let found = match &self.resume {
            Resume::Never => None,
            Resume::Auto => RunDir::newest(&self.root, name, hash),
            Resume::Run(path) => {
                let run = RunDir::open(path)?;
                let ending = format!("-{hash}");
                if !run.path().canonicalize()?.to_string_lossy().ends_with(&ending) {
                    return Err(Failure::usage(format!(
                        "`{}` was started with other settings or data (its name does not end in {hash})",
                        path.display()
                    ))
                    .hint("give the settings it was started with (its config.toml), or `--resume never`")
                    .into());
                }
                Some(run)
            }
        };
        match found {
            Some(run) => {
                let standing = Standing::load_latest(&run, trainer, |line| progress.note(line))?;
                Ok((run, standing))
            }
            None => {
                let now: DateTime<Utc> = SystemTime::now().into();
                let stamp = now.format("%Y%m%dT%H%M%SZ").to_string();
                Ok((RunDir::create(&self.root, &stamp, name, hash)?, None))
            }
        }
    }
}

fn total_steps(settings: &Settings, epoch_batches: u64) -> u64 {
    match settings.train.max_steps {
        0 => epoch_batches * settings.train.epochs,
        steps => steps,
    }
}

fn threads() -> usize {
    rayon::current_num_threads()
}

fn open_data(settings: &Settings) -> anyhow::Result<(Dataset, Data)> {
    let path = Path::new(&settings.train.data);
    let dataset = Dataset::open(path)?;
    let (mut train, mut shard_games) = dataset.load_with_shards(Split::Train)?;
    if settings.train.max_games > 0 {
        let (drawn, places) = train.drawn(settings.train.max_games, settings.train.seed);
        (train, shard_games) = (drawn, drawn_of_shards(&shard_games, &places));
    }
    if train.is_empty() {
        return Err(Failure::data(format!("`{}` has no training games", path.display())).into());
    }
    let validation = dataset.load(Split::Validation).context("cannot read the validation games")?;
    Ok((dataset, Data { train, shard_games, validation }))
}

/// How many of the games at these places each shard holds.
fn drawn_of_shards(shard_games: &[usize], places: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let counts = shard_games.iter().map(|games| {
        let first = end;
        end += games;
        places.iter().filter(|&&place| (first..end).contains(&place)).count()
    });
    counts.filter(|&games| games > 0).collect()
}

fn feed_options(settings: &Settings, dataset: &Dataset, data: &Data) -> FeedOptions {
    FeedOptions {
        batch_size: settings.train.batch_size,
        batching: settings.train.batching,
        seed: settings.train.seed,
        en_passant: dataset.spec().en_passant,
        shard_games: data.shard_games.clone(),
    }
}

/// Whole games, or single steps where the settings say how to draw them.
fn source<'a>(
    settings: &Settings,
    data: &'a Data,
    lengths: &'a [u32],
    options: &'a FeedOptions,
) -> Source<'a> {
    match &settings.sampling {
        None => Source::Games { games: &data.train, lengths, options },
        Some(sampling) => Source::Transitions {
            sampler: Box::new(TransitionSampler::new(
                &data.train,
                options.en_passant,
                sampling,
                settings.train.seed,
            )),
            batch_steps: settings.train.batch_size,
            games: data.train.len() as u64,
        },
    }
}

/// Counts of the data, and what batches are made of.
fn data_lines(data: &Data, source: &Source) -> Vec<String> {
    let steps = data.train.total_plies() + data.train.len() as u64;
    let counts = format!(
        "{} training games ({steps} steps), {} validation games",
        data.train.len(),
        data.validation.len()
    );
    let batches = match source {
        Source::Games { lengths, options, .. } => {
            let padding = |batching| {
                let options = FeedOptions { batching, ..(*options).clone() };
                let (valid, padded) = options.plan(lengths, 0).steps(lengths);
                100.0 * (1.0 - valid as f64 / padded.max(1) as f64)
            };
            format!(
                "padding in batches of {}: {:.1} % bucketed, {:.1} % in the reference's order",
                options.batch_size,
                padding(Batching::Bucketed),
                padding(Batching::Reference)
            )
        }
        Source::Transitions { sampler, batch_steps, .. } => {
            let [queens, others, castling, en_passant, with_rights, near, opponent, own] =
                sampler.kind_counts();
            format!(
                "batches of {batch_steps} steps; drawn more often: {queens} promotions to queen, {others} others, \
                 {with_rights} of both with rights held, {castling} castling, {en_passant} en passant and {near} near \
                 misses, {opponent} losses of the opponent's rights, {own} of own"
            )
        }
    };
    vec![counts, batches]
}
