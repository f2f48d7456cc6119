//! `cwm data info`: what a dataset holds, in numbers and bars.

use std::{collections::BTreeMap, fmt::Write as _};

use cwm_core::{
    chess::{MoveToken, label::LABELS},
    data::Split,
};

use super::{Dataset, export};
use crate::{exit::Failure, progress::Progress};

/// What was counted over the moves of a dataset.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Survey {
    /// Games by plies.
    pub plies: BTreeMap<usize, u64>,
    /// Move tokens seen at least once.
    pub tokens_seen: usize,
    /// Of those, tokens that no legal game of standard chess holds.
    pub tokens_unreachable: usize,
    /// Whether every game was replayed and found legal.
    pub replayed: bool,
}

/// Reads every game; with `replay` also tests each for legality.
///
/// # Errors
/// If the dataset is damaged or, with `replay`, holds a game that is not legal.
pub fn survey(dataset: &Dataset, replay: bool, progress: &Progress) -> anyhow::Result<Survey> {
    let task = progress.task("reading", dataset.manifest().counts.games, "games");
    let mut seen = vec![false; MoveToken::GEOMETRIES];
    let mut plies = BTreeMap::new();
    for row in dataset.rows(Split::All) {
        let row = row?;
        if replay {
            export::states(&row, dataset.spec().en_passant)
                .map_err(|e| Failure::data(format!("game `{}` {e}", row.game.id.escape_debug())))?;
        }
        *plies.entry(row.game.moves.len()).or_default() += 1;
        for token in &row.game.moves {
            seen[usize::from(token.id())] = true;
        }
        task.advance(1);
    }
    let mut reachable = vec![false; MoveToken::GEOMETRIES];
    for token in MoveToken::reachable() {
        reachable[usize::from(token.id())] = true;
    }
    let count = |f: &dyn Fn(usize) -> bool| (0..seen.len()).filter(|&id| seen[id] && f(id)).count();
    Ok(Survey {
        plies,
        tokens_seen: count(&|_| true),
        tokens_unreachable: count(&|id| !reachable[id]),
        replayed: replay,
    })
}

/// The facts as text.
pub fn render(dataset: &Dataset, survey: &Survey) -> String {
    let manifest = dataset.manifest();
    let counts = &manifest.counts;
    let bytes: u64 = manifest.shards.iter().map(|shard| shard.bytes).sum();
    let games = counts.games.max(1);
    let mut text = String::new();
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    fact("dataset", dataset.dir().display().to_string());
    fact("written by", format!("{}, `cwm data {}`", manifest.tool, manifest.origin.command));
    if !manifest.origin.inputs.is_empty() {
        fact("inputs", manifest.origin.inputs.join(", "));
    }
    let settings = manifest.origin.settings.iter().map(|(name, value)| format!("{name} {value}"));
    fact("settings", settings.collect::<Vec<_>>().join(", "));
    fact("id key", format!("{:?}", manifest.origin.id_key).to_lowercase());
    fact(
        "spec",
        format!(
            "{} move tokens, {LABELS} labels, en passant label {}",
            MoveToken::VOCAB,
            format!("{:?}", manifest.spec.en_passant).to_lowercase()
        ),
    );
    fact(
        "games",
        format!(
            "{} (train {}, validation {})",
            counts.games, counts.train_games, counts.validation_games
        ),
    );
    if counts.nonstandard_games > 0 {
        fact("", format!("{} of them of variants or from other starts", counts.nonstandard_games));
    }
    fact("plies", format!("{}, {:.1} a game", counts.plies, counts.plies as f64 / games as f64));
    let results = counts
        .results
        .iter()
        .map(|(result, n)| format!("{result} {:.1} %", 100.0 * *n as f64 / games as f64));
    fact("results", results.collect::<Vec<_>>().join(", "));
    fact(
        "size",
        format!(
            "{bytes} bytes in {} shards, {:.1} bytes a game",
            manifest.shards.len(),
            bytes as f64 / games as f64
        ),
    );
    let skipped = &manifest.skipped;
    if skipped.total() > 0 {
        fact("skipped", format!("{} games", skipped.total()));
        for (reason, n) in skipped.iter() {
            fact("", format!("{n} {reason}"));
        }
    }
    let checked =
        if survey.replayed { "checksums right, every game legal" } else { "checksums right" };
    fact("checked", checked.into());
    text.push('\n');
    text += &coverage(survey);
    text.push('\n');
    text += &histogram(&survey.plies);
    text
}

/// The coverage of move tokens, as the paper's Table 3 counts it.
fn coverage(survey: &Survey) -> String {
    let reachable = MoveToken::reachable().len();
    let share = |n: usize, of: usize| 100.0 * n as f64 / of as f64;
    let seen = survey.tokens_seen;
    let mut text = String::from("move tokens (START and PAD not counted)\n");
    let _ = writeln!(text, "  {:>6}  in the vocabulary", MoveToken::GEOMETRIES);
    let _ = writeln!(text, "  {seen:>6}  seen ({:.2} %)", share(seen, MoveToken::GEOMETRIES));
    let _ = writeln!(text, "  {reachable:>6}  in legal games of standard chess");
    let standard = seen - survey.tokens_unreachable;
    let _ = writeln!(text, "  {standard:>6}  of those seen ({:.2} %)", share(standard, reachable));
    if survey.tokens_unreachable > 0 {
        let _ = writeln!(text, "  {:>6}  seen that are none of those", survey.tokens_unreachable);
    }
    text
}

/// Bars of games by plies, twenty plies a bar at first, wider where games are long.
fn histogram(plies: &BTreeMap<usize, u64>) -> String {
    const BARS: usize = 20;
    const WIDTH: usize = 50;
    let longest = plies.keys().next_back().copied().unwrap_or(0);
    let width = 20 * (longest / 20 / BARS + 1);
    let mut bars = vec![0_u64; longest / width + 1];
    for (&length, &games) in plies {
        bars[length / width] += games;
    }
    let most = bars.iter().copied().max().unwrap_or(0).max(1);
    let mut text = String::from("plies         games\n");
    for (i, &games) in bars.iter().enumerate() {
        let length = (games as u128 * WIDTH as u128).div_ceil(u128::from(most)) as usize;
        let bar = "#".repeat(length);
        let _ = writeln!(text, "{:>5}-{:<5} {games:>8} {bar}", i * width, (i + 1) * width - 1);
    }
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    trimmed.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_count_every_game() {
        let plies = BTreeMap::from([(0, 1), (19, 2), (20, 1), (45, 6)]);
        assert_eq!(
            histogram(&plies),
            format!(
                "plies         games\n    0-19           3 {}\n   20-39           1 {}\n   40-59           6 {}\n",
                "#".repeat(25),
                "#".repeat(9),
                "#".repeat(50)
            )
        );
        assert!(histogram(&BTreeMap::from([(65_534, 1)])).lines().count() <= 22);
        assert_eq!(histogram(&BTreeMap::new()).lines().count(), 2);
    }
}
