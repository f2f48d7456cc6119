//! Tables that look closer: what follows the moves of a policy, and the worst games.

use super::{
    Evaluation,
    blocks::{Block, percent, short_name},
    numbers::grouped,
    table::Table,
};
use crate::chess::label::LabelGroup;

/// What follows the moves that a policy seeks, if a policy played.
pub(super) fn aftermath(graded: &[&Evaluation]) -> Vec<Block> {
    let found: Vec<_> =
        graded.iter().filter_map(|e| Some((&e.tracker, e.aftermath.as_ref()?))).collect();
    let Some((_, first)) = found.first() else { return Vec::new() };
    let mut blocks = Vec::new();
    if first.events > 0 {
        let mut header = vec!["exact states %".to_string(), "at the move".into()];
        header.extend(first.lags.iter().skip(1).map(|lag| format!("+{}", lag.after_steps)));
        let mut table = Table { header, rows: vec![] };
        for (tracker, aftermath) in &found {
            let shares = aftermath.lags.iter().map(|lag| percent(&lag.exact_state_accuracy));
            table.push([(*tracker).clone()].into_iter().chain(shares).collect());
        }
        let heading =
            format!("Behind the {} moves that the policy seeks (steps)", grouped(first.events));
        blocks.push(Block { level: 1, heading, table: Some(table), notes: vec![] });
    }
    let mut header = vec!["steps"];
    header.extend(LabelGroup::ALL.map(short_name));
    let mut table = Table::new(&header);
    for (tracker, aftermath) in &found {
        let half_lives = aftermath.errors.iter().map(|group| match group.half_life_steps {
            Some(steps) => steps.to_string(),
            None if group.errors == 0 => "no errors".into(),
            None => "never".into(),
        });
        table.push([(*tracker).clone()].into_iter().chain(half_lives).collect());
    }
    let heading = "Half-life of an error".into();
    blocks.push(Block { level: 1, heading, table: Some(table), notes: vec![] });
    blocks
}

/// Games of a tracker that the tables list; the report has more.
const WORST_GAMES: usize = 3;

/// The worst games of each tracker.
pub(super) fn worst_games(graded: &[&Evaluation]) -> Block {
    let mut table =
        Table::new(&["tracker", "game", "exact states", "first mistake at step", "wrong labels"]);
    let mut notes = Vec::new();
    for evaluation in graded {
        if evaluation.worst_games.is_empty() && evaluation.complete {
            notes.push(format!("{}: none is wrong", evaluation.tracker));
        }
        for game in evaluation.worst_games.iter().take(WORST_GAMES) {
            table.push(vec![
                evaluation.tracker.clone(),
                game.name.clone().unwrap_or_else(|| format!("#{}", game.game + 1)),
                format!("{} of {}", game.exact_steps, game.steps),
                game.first_mistake.to_string(),
                grouped(game.labels_wrong),
            ]);
        }
    }
    Block { level: 1, heading: "Worst games".into(), table: Some(table), notes }
}
