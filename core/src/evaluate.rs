//! The evaluation loop: games in, counts out. The command line and the page both run this one.

use std::ops::ControlFlow;

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use crate::{
    chess::{Policy, Trajectory},
    event::{Event, Partial},
    metrics::{Aftermath, Counts, GameRecord, WorstGames},
    tracker::{Prediction, TrackError, Tracker},
};

/// How games are put into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchBudget {
    /// Steps a batch may hold, padding included; a longer game makes a batch of its own.
    pub steps: usize,
    /// Games a batch may hold.
    pub games: usize,
}

impl Default for BatchBudget {
    fn default() -> Self {
        BatchBudget { steps: 8192, games: 128 }
    }
}

/// Batches' worth of games that are read ahead and sorted by length: wide enough that padding is small, narrow enough
/// that memory stays bounded however many games there are.
const WINDOW_BATCHES: usize = 16;

/// What came of an evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grading {
    /// Counts over all graded games.
    pub counts: Counts,
    /// Each graded game, in the order given.
    pub games: Vec<GameRecord>,
    /// The place of each graded game among those given, from 0: ascending, and without gaps if complete.
    pub places: Vec<usize>,
    /// Whether every game was graded; `false` after a cancellation.
    pub complete: bool,
    /// SHA-256 over the games read, in hex: a line of space-separated token ids, START first, for each. Equal hashes
    /// mean equal games, whoever graded them.
    pub moves_sha256: String,
    /// The games that went worst.
    pub worst: WorstGames,
    /// What follows the moves that the games' policy seeks, where they have one.
    pub aftermath: Option<Aftermath>,
}

/// An evaluation that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError<E> {
    /// The tracker failed.
    #[error(transparent)]
    Tracker(#[from] TrackError),
    /// The games could not be read.
    #[error("cannot read game {game}")]
    Games {
        /// The game's place in the dataset, from 0.
        game: usize,
        /// Why.
        #[source]
        source: E,
    },
}

/// Grades `tracker` on `games`.
///
/// Games are read ahead in windows, sorted by length and cut into batches within `budget`; the batches of a window run
/// in a shuffled order, so that a cancelled evaluation is no sample of short games. Neither the budget nor the order
/// changes the result. `on_event` hears of every batch and cancels by breaking.
///
/// # Errors
/// The tracker's error, or the first error that `games` yields.
pub async fn evaluate<T: Tracker, E>(
    tracker: &T,
    dataset: &str,
    games: impl IntoIterator<Item = Result<Trajectory, E>>,
    games_total: Option<u64>,
    budget: BatchBudget,
    on_event: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<Grading, EvaluateError<E>> {
    evaluate_play(tracker, dataset, None, games, games_total, budget, on_event).await
}

/// Like [`evaluate`], of games that this policy played: also counts what follows the moves that it seeks.
///
/// # Errors
/// The tracker's error, or the first error that `games` yields.
pub async fn evaluate_play<T: Tracker, E>(
    tracker: &T,
    dataset: &str,
    policy: Option<Policy>,
    games: impl IntoIterator<Item = Result<Trajectory, E>>,
    games_total: Option<u64>,
    budget: BatchBudget,
    mut on_event: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<Grading, EvaluateError<E>> {
    let mut games = games.into_iter();
    let mut counts = Counts::default();
    let mut records: Vec<Option<GameRecord>> = Vec::new();
    let mut worst = WorstGames::default();
    let mut aftermath = policy.map(|_| Aftermath::default());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut hash = Sha256::new();
    let mut going = on_event(Event::Started {
        tracker: tracker.name().to_string(),
        dataset: dataset.to_string(),
        games_total,
    });
    while going.is_continue() {
        let first = records.len();
        let window = read_window(&mut games, budget)
            .map_err(|(offset, source)| EvaluateError::Games { game: first + offset, source })?;
        if window.is_empty() {
            break;
        }
        records.resize(first + window.len(), None);
        window.iter().for_each(|game| hash_moves(&mut hash, game));
        let mut batches = plan(&window, budget);
        batches.shuffle(&mut rng);
        for batch in batches {
            let trajectories: Vec<&Trajectory> = batch.iter().map(|&i| &window[i]).collect();
            let predictions = tracker.grade(&trajectories).await?;
            if predictions.len() != batch.len() {
                let (got, sent) = (predictions.len(), batch.len());
                let message = format!("{got} predictions for {sent} games");
                return Err(TrackError::Device(message).into());
            }
            for (&i, prediction) in batch.iter().zip(&predictions) {
                let record = counts.add(&window[i], prediction);
                worst.consider((first + i) as u64, &window[i], &record);
                if let (Some(aftermath), Some(policy)) = (&mut aftermath, policy) {
                    aftermath.add(policy, &window[i], prediction);
                }
                records[first + i] = Some(record);
            }
            going = on_event(Event::Graded(Partial::from(&counts)));
            if going.is_break() {
                break;
            }
        }
    }
    let complete = going.is_continue();
    let _ = on_event(Event::Finished { graded: Partial::from(&counts), complete });
    let moves_sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let graded = records.into_iter().enumerate().filter_map(|(i, record)| Some((i, record?)));
    let (places, games) = graded.unzip();
    Ok(Grading { counts, games, places, complete, moves_sha256, worst, aftermath })
}

fn hash_moves(hash: &mut Sha256, game: &Trajectory) {
    let ids: Vec<String> = game.tokens().iter().map(|token| token.id().to_string()).collect();
    hash.update(ids.join(" "));
    hash.update("\n");
}

/// The next games, up to a window's worth; on an error its place in the window and what it was.
fn read_window<E>(
    games: &mut impl Iterator<Item = Result<Trajectory, E>>,
    budget: BatchBudget,
) -> Result<Vec<Trajectory>, (usize, E)> {
    let mut window = Vec::new();
    let mut steps = 0;
    while steps < budget.steps.max(1).saturating_mul(WINDOW_BATCHES)
        && window.len() < budget.games.max(1).saturating_mul(WINDOW_BATCHES)
    {
        let Some(game) = games.next() else { break };
        let game = game.map_err(|error| (window.len(), error))?;
        steps += game.steps();
        window.push(game);
    }
    Ok(window)
}

/// Indices of `window` in batches of near-equal length that keep to the budget.
fn plan(window: &[Trajectory], budget: BatchBudget) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..window.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(window[i].steps()));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut longest = 0;
    for i in order {
        match batches.last_mut() {
            Some(batch)
                if batch.len() < budget.games && longest * (batch.len() + 1) <= budget.steps =>
            {
                batch.push(i);
            }
            _ => {
                longest = window[i].steps();
                batches.push(vec![i]);
            }
        }
    }
    batches
}

/// Grades one game at every step, as [`evaluate`] would, and keeps the predicted states.
///
/// # Errors
/// The tracker's error.
pub async fn predict<T: Tracker>(tracker: &T, game: &Trajectory) -> Result<Prediction, TrackError> {
    let mut predictions = tracker.grade(&[game]).await?;
    predictions.pop().ok_or_else(|| TrackError::Device("no prediction for a game".into()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;
    use crate::{baseline::Baseline, chess::MoveToken, tracker::ready};

    /// Knight moves back and forth: as many plies as asked for.
    fn shuffling(plies: usize) -> Trajectory {
        // g1f3 g8f6 f3g1 f6g8
        let moves = [(6, 21), (62, 45), (21, 6), (45, 62)];
        let token = |&(from, to): &(u32, u32)| MoveToken::new((from * 64 + to) * 5).unwrap();
        let tokens: Vec<_> = moves.iter().map(token).cycle().take(plies).collect();
        Trajectory::replay(&tokens)
    }

    fn grade(plies: &[usize], budget: BatchBudget) -> Grading {
        let games = plies.iter().map(|&n| Ok::<_, Infallible>(shuffling(n)));
        let run = evaluate(&Baseline::StartBoard, "test", games, None, budget, |_| {
            ControlFlow::Continue(())
        });
        ready(run).expect("baselines never wait").unwrap()
    }

    proptest! {
        #[test]
        fn batching_changes_nothing(
            plies in proptest::collection::vec(0..60usize, 0..40), steps in 0..300usize, games in 0..9usize
        ) {
            let all = grade(&plies, BatchBudget::default());
            prop_assert_eq!(&all, &grade(&plies, BatchBudget { steps, games }));
            prop_assert!(all.complete);
            let found: Vec<usize> = all.games.iter().map(|g| g.steps as usize - 1).collect();
            prop_assert_eq!(found, plies);
        }

        #[test]
        fn batches_keep_to_the_budget(plies in proptest::collection::vec(0..60usize, 0..40)) {
            let window: Vec<_> = plies.iter().map(|&n| shuffling(n)).collect();
            let batches = plan(&window, BatchBudget { steps: 100, games: 5 });
            for batch in &batches {
                let longest = batch.iter().map(|&i| window[i].steps()).max().unwrap();
                prop_assert!(batch.len() == 1 || longest * batch.len() <= 100);
                prop_assert!(batch.len() <= 5);
            }
            let mut seen = batches.concat();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..plies.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn events_tell_progress_and_breaking_cancels() {
        let games = (0..40).map(|n| Ok::<_, Infallible>(shuffling(n)));
        let budget = BatchBudget { steps: 64, games: 4 };
        let mut events = Vec::new();
        let run = evaluate(&Baseline::StartBoard, "test", games, Some(40), budget, |event| {
            events.push(event);
            if events.len() == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let grading = ready(run).unwrap().unwrap();
        assert!(!grading.complete);
        assert_eq!(grading.counts.games as usize, grading.games.len());
        let steps = grading.games.iter().map(|game| game.steps as usize - 1);
        assert_eq!(steps.collect::<Vec<_>>(), grading.places);
        assert_eq!(events.len(), 5);
        let Event::Finished { graded, complete: false } = events[4] else {
            panic!("{:?}", events[4])
        };
        assert_eq!(graded, Partial::from(&grading.counts));
        let json = serde_json::to_string(&events).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Event>>(&json).unwrap(), events);
    }

    #[test]
    fn an_unreadable_game_is_named() {
        let games = (0..9).map(|n| if n == 7 { Err("bad row") } else { Ok(shuffling(n)) });
        let budget = BatchBudget { steps: 1, games: 1 };
        let run =
            evaluate(
                &Baseline::StartBoard,
                "t",
                games,
                None,
                budget,
                |_| ControlFlow::Continue(()),
            );
        let error = ready(run).unwrap().unwrap_err();
        assert!(matches!(error, EvaluateError::Games { game: 7, source: "bad row" }), "{error:?}");
    }
}
