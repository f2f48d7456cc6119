//! Sets of games, read or played whole before they are graded: two bytes a ply.

use std::{cell::RefCell, rc::Rc};

use cwm_core::{
    chess::{Policy, Trajectory, parse::parse_games, random::RandomPlay},
    data::{
        GameResult, Games, IdKey, SkipCounts, SkipReason,
        blocks::{Block, Blocks},
        pgn::{self, AtGames, Keep},
    },
    report::{DatasetInfo, Source},
};
use cwm_models::splits::CLASSICS_PGN;
use cwm_protocol::{Fault, GameSet, Phase, Say, code};

use crate::{
    faults,
    host::{Host, InputFile, Reader},
};

/// A set of games at hand.
#[derive(Debug)]
pub(crate) struct Set {
    /// What the report says of it.
    pub(crate) info: DatasetInfo,
    /// The games, each with its name (empty for none) as its id.
    pub(crate) games: Games,
    /// Games that were left out.
    pub(crate) skipped: SkipCounts,
}

/// Time between two pauses while games are read or played.
const SLICE_MILLIS: f64 = 40.0;
/// The largest PGN that is read.
const PGN_BYTES_MAX: u64 = 2 << 30;

/// Tells how far the reading is, and lets messages in.
pub(crate) struct Pace<'h, H> {
    host: &'h H,
    id: u32,
    paused_at_millis: f64,
}

impl<'h, H: Host> Pace<'h, H> {
    pub(crate) fn new(host: &'h H, id: u32) -> Self {
        Pace { host, id, paused_at_millis: host.now_millis() }
    }

    async fn tell(&mut self, done: u64, total: Option<u64>) {
        if self.host.now_millis() - self.paused_at_millis >= SLICE_MILLIS {
            self.host.say(self.id, Say::Phase { phase: Phase::ReadingGames, done, total });
            self.host.pause().await;
            self.paused_at_millis = self.host.now_millis();
        }
    }
}

impl Set {
    /// Reads or plays a set of games; `None` if `cancelled` says so meanwhile. PGNs are taken from `files` in order.
    pub(crate) async fn gather<H: Host>(
        set: &GameSet,
        limit: Option<u64>,
        files: &mut impl Iterator<Item = Box<dyn InputFile>>,
        pace: &mut Pace<'_, H>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Set>, Fault> {
        let gathered = match set {
            GameSet::Classics => Some(classics(limit)?),
            GameSet::Random { policy, seed, games, min_fullmoves } => {
                let games = (*games).min(limit.unwrap_or(u64::MAX));
                random(*policy, *seed, games, *min_fullmoves, pace, cancelled).await?
            }
            GameSet::Pgn { name, min_fullmoves } => {
                let file = files.next().ok_or_else(|| {
                    Fault::new(
                        code::REQUEST,
                        format!("no file for `{name}`"),
                        "choose the PGN again",
                    )
                })?;
                pgn_file(name, *min_fullmoves, file.as_ref(), limit, pace, cancelled).await?
            }
        };
        Ok(gathered.map(|mut set| {
            set.info.limit = limit;
            set
        }))
    }

    /// How many games there are.
    pub(crate) fn len(&self) -> usize {
        self.games.len()
    }

    /// The name of a game.
    pub(crate) fn name(&self, place: u64) -> Option<String> {
        let name = self.games.id(usize::try_from(place).ok().filter(|&at| at < self.len())?);
        (!name.is_empty()).then(|| name.to_string())
    }

    /// The policy that played the games, where it sought something.
    pub(crate) fn policy(&self) -> Option<Policy> {
        match self.info.source {
            Source::RuleStratum { policy, .. } => Some(policy),
            _ => None,
        }
    }

    /// The games with their states, replayed as they are asked for.
    pub(crate) fn trajectories(&self) -> impl Iterator<Item = Trajectory> + '_ {
        let en_passant = self.info.en_passant;
        self.games.iter().map(move |(_, moves)| Trajectory::replay_with(moves, en_passant))
    }
}

fn classics(limit: Option<u64>) -> Result<Set, Fault> {
    let parsed = parse_games(CLASSICS_PGN)
        .map_err(|error| Fault::new(code::GAMES, error, "reload the page"))?;
    let mut games = Games::new();
    for game in parsed.iter().take(limit.map_or(usize::MAX, |n| n as usize)) {
        let players = game.tag("White").zip(game.tag("Black"));
        let name = players.map(|(white, black)| format!("{white} - {black}"));
        games.push(&name.unwrap_or_default(), &game.moves, game.result);
    }
    let info = DatasetInfo::classics();
    Ok(Set { info, games, skipped: SkipCounts::default() })
}

async fn random<H: Host>(
    policy: Policy,
    seed: u64,
    wanted: u64,
    min_fullmoves: u32,
    pace: &mut Pace<'_, H>,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<Set>, Fault> {
    let most = policy.max_min_fullmoves();
    if min_fullmoves > most {
        let message =
            format!("hardly any game of `{}` has {min_fullmoves} full moves", policy.name());
        return Err(Fault::new(code::GAMES, message, format!("ask for {most} at most")));
    }
    let mut play = RandomPlay::with_policy(policy, seed, min_fullmoves);
    let mut games = Games::new();
    while (games.len() as u64) < wanted {
        if let Some(game) = play.play() {
            games.push(&game.id, &game.moves, game.result);
        }
        pace.tell(games.len() as u64, Some(wanted)).await;
        if cancelled() {
            return Ok(None);
        }
    }
    let info = DatasetInfo::random(policy, seed, min_fullmoves);
    Ok(Some(Set { info, games, skipped: SkipCounts::default() }))
}

/// Reads a PGN as `cwm evaluate` does, in blocks.
async fn pgn_file<H: Host>(
    name: &str,
    min_fullmoves: u32,
    file: &dyn InputFile,
    limit: Option<u64>,
    pace: &mut Pace<'_, H>,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<Set>, Fault> {
    let total_bytes = file.size_bytes();
    if total_bytes > PGN_BYTES_MAX {
        let message =
            format!("the PGN has {total_bytes} bytes; the page reads up to {PGN_BYTES_MAX}");
        return Err(Fault::new(
            code::TOO_LARGE,
            message,
            "use `cwm data prepare` and `cwm evaluate`",
        ));
    }
    let at = Rc::new(RefCell::new(0));
    let blocks = Blocks::new(Reader { file, at: at.clone() }, AtGames, Vec::new());
    let id_key = IdKey::default();
    let keep = Keep { min_plies: 2 * min_fullmoves as usize, id_key: &id_key };
    let limit = limit.unwrap_or(u64::MAX);
    let (mut games, mut skipped) = (Games::new(), SkipCounts::default());
    for block in blocks {
        match block.map_err(|error| faults::of_read(&error))? {
            Block::TooLarge => skipped.add(SkipReason::TooLarge),
            Block::Text(text) => {
                let (parsed, left_out) = pgn::parse(&text, &keep);
                skipped.merge(&left_out);
                let wanted = usize::try_from(limit).unwrap_or(usize::MAX) - games.len();
                for (id, moves) in parsed.iter().take(wanted) {
                    games.push(id, moves, GameResult::Unknown);
                }
            }
        }
        let done = *at.borrow();
        pace.tell(done, Some(total_bytes)).await;
        if cancelled() {
            return Ok(None);
        }
        if games.len() as u64 >= limit {
            break;
        }
    }
    if games.is_empty() {
        return Err(nothing_kept(name, &skipped));
    }
    let source = Source::File { path: name.to_string(), skipped: skipped.total() };
    let split = Some(cwm_core::paper::Split::HeldOutReal);
    let info = DatasetInfo::new(name.to_string(), source, split);
    Ok(Some(Set { info, games, skipped }))
}

fn nothing_kept(name: &str, skipped: &SkipCounts) -> Fault {
    if skipped.total() == 0 {
        return Fault::new(
            code::GAMES,
            format!("no games found in `{name}`"),
            "choose a PGN: a text file of chess games",
        );
    }
    let reasons: Vec<String> =
        skipped.iter().map(|(reason, games)| format!("{games} {reason}")).collect();
    Fault::new(
        code::GAMES,
        format!("none of the {} games in `{name}` can be graded", skipped.total()),
        format!("reasons: {}", reasons.join("; ")),
    )
}
