//! `cwm` without a command: what is shipped, graded on a small sample of human and of random play.

use cwm_core::{
    chess::Policy,
    metrics::Resampling,
    report::{Detail, text},
};
use cwm_models::device::DeviceChoice;

use crate::{
    evaluate::{GameSource, Job, Subject, grade_all},
    exit::Exit,
    output,
    progress::Progress,
    train::signals::Stop,
};

/// Random games that are graded: enough for intervals of a few percent, few enough to be done in seconds.
const RANDOM_GAMES: u64 = 500;

/// Grades the shipped checkpoints and all baselines, and says what to try next.
///
/// # Errors
/// If a tracker fails or the report cannot be written.
pub fn run(progress: &Progress) -> anyhow::Result<Exit> {
    let mut subjects = Subject::all_shipped(DeviceChoice::CPU)?;
    let first_model = subjects.first().map(|subject| subject.info.name.clone());
    subjects.extend(Subject::baselines());
    let stop = Stop::listen()?;
    let random = GameSource::random(Policy::Uniform, RANDOM_GAMES, 0, 10, progress, &stop);
    let sources = vec![GameSource::classics()?, random];
    let job = Job { subjects, sources, resampling: Resampling::default(), worst_games: 0 };
    let report = grade_all(&job, progress, &stop)?;
    output::print(text(&report, Detail::default()))?;
    if stop.requested() {
        progress.note("interrupted: the tables hold what was graded by then");
        return Ok(Exit::Interrupted);
    }
    output::print(next_steps(first_model.as_deref()))?;
    Ok(Exit::Done)
}

fn next_steps(model: Option<&str>) -> String {
    let intro = match model {
        Some(_) => "Small samples: good for a first look, not for a comparison.",
        None => "This build ships no checkpoint yet: the table holds the baselines alone.",
    };
    let subject = model.unwrap_or("naive-mover+rights");
    format!(
        "\n{intro} To go on:\n\n  \
         cwm predict {subject} --san '1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O'   one game, ply by ply\n  \
         cwm evaluate {subject} --baselines --random 1000 --details --out scores   tables, JSON, charts\n  \
         cwm data prepare games.pgn.zst --out games      a dataset of your own\n  \
         cwm train --help                                a model of your own\n"
    )
}
