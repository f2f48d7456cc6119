//! The games to grade: from a seed, from a dataset on disk, or those that ship with the tool.

use std::path::Path;

use anyhow::Context;
use cwm_core::{
    chess::{MoveToken, Policy, Trajectory, parse::parse_games, random::RandomPlay},
    data::Split,
    paper,
    report::{DatasetInfo, Source},
};
use cwm_models::splits::CLASSICS_PGN;

use crate::{data::Dataset, exit::Failure, progress::Progress, train::signals::Stop};

/// A named set of games that can be gone through several times.
#[derive(Debug)]
pub struct GameSource {
    /// What the report says of it.
    pub info: DatasetInfo,
    games: Games,
}

#[derive(Debug)]
enum Games {
    /// Moves without START, in memory.
    Listed(Vec<Vec<MoveToken>>),
    /// Read anew each time: a dataset may be larger than memory.
    Stored(Box<Dataset>, Split),
}

/// Games with their states, ready to be graded.
pub type Trajectories<'a> = Box<dyn Iterator<Item = anyhow::Result<Trajectory>> + Send + 'a>;

impl GameSource {
    /// Games that are at hand.
    pub fn listed(info: DatasetInfo, games: Vec<Vec<MoveToken>>) -> Self {
        GameSource { info, games: Games::Listed(games) }
    }

    /// The famous games that ship with cwm.
    ///
    /// # Errors
    /// If the build holds a damaged sample; its tests rule that out.
    pub fn classics() -> anyhow::Result<Self> {
        let games = parse_games(CLASSICS_PGN).context("cannot read the built-in games")?;
        let games = games.into_iter().map(|game| game.moves).collect();
        Ok(Self::listed(DatasetInfo::classics(), games))
    }

    /// Random legal play by a policy; a stop request leaves fewer games.
    pub fn random(
        policy: Policy,
        games: u64,
        seed: u64,
        min_fullmoves: u32,
        progress: &Progress,
        stop: &Stop,
    ) -> Self {
        let info = DatasetInfo::random(policy, seed, min_fullmoves);
        let task = progress.task(&format!("playing {}", info.name), games, "games");
        let moves = RandomPlay::with_policy(policy, seed, min_fullmoves)
            .take(games as usize)
            .take_while(|_| !stop.requested())
            .inspect(|_| task.advance(1))
            .map(|game| game.moves)
            .collect();
        Self::listed(info, moves)
    }

    /// A dataset's directory.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 3 if it is no dataset, damaged, or cannot be replayed.
    pub fn stored(name: &str, dir: &Path, split: Split) -> anyhow::Result<Self> {
        let dataset = Dataset::open(dir)?;
        // An early look: what cannot be replayed is refused before anything is graded.
        drop(dataset.games(split)?);
        let origin = &dataset.manifest().origin;
        let uniform = origin
            .settings
            .get("policy")
            .is_none_or(|policy| policy.as_str() == Some(Policy::Uniform.name()));
        let resembles = match origin.command.as_str() {
            "random" => uniform.then_some(paper::Split::RandomUniform),
            _ => Some(paper::Split::HeldOutReal),
        };
        let info = DatasetInfo {
            name: name.to_string(),
            source: Source::Stored {
                path: dir.display().to_string(),
                part: split,
                data_sha256: Some(dataset.manifest().data_sha256()),
            },
            en_passant: dataset.spec().en_passant,
            split: resembles,
            limit: None,
        };
        let source = GameSource { info, games: Games::Stored(Box::new(dataset), split) };
        match source.total() {
            0 => Err(Failure::data(format!("`{}` holds no games to grade", dir.display()))
                .hint("choose another --split, or prepare the dataset with other filters")
                .into()),
            _ => Ok(source),
        }
    }

    /// Takes the first games only.
    #[must_use]
    pub fn limited(mut self, limit: Option<u64>) -> Self {
        self.info.limit = limit;
        self
    }

    /// How many games there are.
    pub fn total(&self) -> u64 {
        let all = match &self.games {
            Games::Listed(games) => games.len() as u64,
            Games::Stored(dataset, split) => {
                let counts = &dataset.manifest().counts;
                match split {
                    Split::All => counts.games,
                    Split::Train => counts.train_games,
                    Split::Validation => counts.validation_games,
                }
            }
        };
        all.min(self.info.limit.unwrap_or(u64::MAX))
    }

    /// The games from the first on, replayed as they are asked for.
    ///
    /// # Errors
    /// If the dataset cannot be read; errors further on come from the iterator.
    pub fn open(&self) -> anyhow::Result<Trajectories<'_>> {
        let en_passant = self.info.en_passant;
        let total = self.total() as usize;
        Ok(match &self.games {
            Games::Listed(games) => {
                let replay =
                    move |moves: &Vec<MoveToken>| Ok(Trajectory::replay_with(moves, en_passant));
                Box::new(games.iter().take(total).map(replay))
            }
            Games::Stored(dataset, split) => {
                let games = dataset.games(*split)?.take(total);
                Box::new(games.map(move |game| {
                    game.map(|game| Trajectory::replay_with(&game.moves, en_passant))
                }))
            }
        })
    }
}
