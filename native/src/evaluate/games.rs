//! The games to grade: from a seed, from a dataset on disk, or those that ship with the tool.

use std::path::Path;

use anyhow::Context;
use cwm_core::{
    chess::{
        MoveToken, Policy, Trajectory,
        parse::{ParsedGame, parse_games},
        random::RandomPlay,
    },
    data::Split,
    paper,
    report::{DatasetInfo, Source},
};
use cwm_models::splits::CLASSICS_PGN;

use super::file::GameFile;
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
    /// Names, where they have some, and moves without START; in memory.
    Listed(Vec<(Option<String>, Vec<MoveToken>)>),
    /// Read and checked anew each time.
    File(GameFile),
    /// Read anew each time: a dataset may be larger than memory.
    Stored(Box<Dataset>, Split),
}

/// Games with their states, ready to be graded.
pub type Trajectories<'a> = Box<dyn Iterator<Item = anyhow::Result<Trajectory>> + Send + 'a>;

impl GameSource {
    /// Games that are at hand.
    pub fn listed(info: DatasetInfo, games: Vec<(Option<String>, Vec<MoveToken>)>) -> Self {
        GameSource { info, games: Games::Listed(games) }
    }

    /// The famous games that ship with cwm.
    ///
    /// # Errors
    /// If the build holds a damaged sample; its tests rule that out.
    pub fn classics() -> anyhow::Result<Self> {
        let games = parse_games(CLASSICS_PGN).context("cannot read the built-in games")?;
        let games = games.into_iter().map(|game| (players(&game), game.moves)).collect();
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
            .map(|game| (Some(game.id), game.moves))
            .collect();
        Self::listed(info, moves)
    }

    /// A file of games, plain or compressed: PGN or lines of UCI moves.
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be read or holds no legal game of standard chess.
    pub fn file(name: &str, path: &Path, limit: Option<u64>) -> anyhow::Result<Self> {
        let file = GameFile::open(path, limit)?;
        let source = Source::File { path: path.display().to_string(), skipped: file.skipped };
        let info = DatasetInfo::new(name.to_string(), source, Some(paper::Split::HeldOutReal));
        Ok(GameSource { info, games: Games::File(file) })
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
            Games::File(file) => file.games,
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
                Box::new(games.iter().take(total).map(move |(_, moves)| replay(moves)))
            }
            Games::File(file) => {
                let games = file.read()?.take(total);
                Box::new(games.map(move |game| {
                    game.map(|(_, moves)| Trajectory::replay_with(&moves, en_passant))
                }))
            }
            Games::Stored(dataset, split) => {
                let games = dataset.games(*split)?.take(total);
                Box::new(games.map(move |game| {
                    game.map(|game| Trajectory::replay_with(&game.moves, en_passant))
                }))
            }
        })
    }

    /// Names the games at these places, as far as they have names.
    ///
    /// # Errors
    /// If the games cannot be read again.
    pub fn names(&self, places: &[u64]) -> anyhow::Result<Vec<Option<String>>> {
        let mut names = vec![None; places.len()];
        let Some(last) = places.iter().max() else { return Ok(names) };
        let found: Box<dyn Iterator<Item = anyhow::Result<Option<String>>>> = match &self.games {
            Games::Listed(games) => Box::new(games.iter().map(|(name, _)| Ok(name.clone()))),
            Games::File(file) => Box::new(file.read()?.map(|game| Ok(Some(game?.0)))),
            Games::Stored(dataset, split) => {
                Box::new(dataset.games(*split)?.map(|game| Ok(Some(game?.id))))
            }
        };
        for (place, name) in (0..=*last).zip(found) {
            let name = name?;
            for (at, wanted) in places.iter().enumerate() {
                if *wanted == place {
                    names[at] = name.clone();
                }
            }
        }
        Ok(names)
    }
}

/// Who played: `Morphy - Isouard`.
fn players(game: &ParsedGame) -> Option<String> {
    let (white, black) = (game.tag("White")?, game.tag("Black")?);
    Some(format!("{white} - {black}"))
}
