//! A report as headings, tables and notes, for a terminal or as Markdown.

use super::{
    DatasetInfo, EvalReport, Evaluation, LossMean, Share, Source, TrackerKind, close_up,
    numbers::{grouped, short_count, short_loss},
    table::Table,
};
use crate::{
    chess::{EnPassant, label::LabelGroup},
    data,
    metrics::BIN_STEPS,
    paper::{self, Split, Variant},
};

/// How much a rendered report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Also accuracy by label group, by prefix bin, and first mistakes.
    pub breakdown: bool,
    /// Every row that the paper published, instead of the best and the graded models' own.
    pub all_paper_rows: bool,
    /// No rows of the paper at all.
    pub no_paper_rows: bool,
}

/// What the mark means.
const STRUCTURED: &str = "trackers marked `structured` carry a state that has the form of the answer: they show how hard \
    the rules are to learn, not how hard a state is to keep, and do not compare with sequence mixers";

/// Where training budgets stand: a terminal has no room for another column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budget {
    Column,
    Note,
}

/// What the column of training budgets counts.
const READ: &str = "read: games that the model read in training, each as often as it read it";

/// A heading, a table, and what must be said about it.
pub(super) struct Block {
    pub(super) level: usize,
    pub(super) heading: String,
    pub(super) table: Option<Table>,
    pub(super) notes: Vec<String>,
}

/// The report for a terminal: no colours, no control characters.
pub fn text(report: &EvalReport, detail: Detail) -> String {
    let mut text = String::new();
    for block in blocks(report, detail, Budget::Note) {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &block.heading;
        text.push('\n');
        text += &block.table.map_or(String::new(), |table| table.to_text());
        block.notes.iter().flat_map(|note| wrapped(note)).for_each(|line| text += &line);
    }
    text
}

/// A note as indented lines of at most [`NOTE_WIDTH`] characters (a longer word stands alone).
fn wrapped(note: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in note.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= NOTE_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("  {word}")),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

const NOTE_WIDTH: usize = 96;

/// The report as Markdown.
pub fn markdown(report: &EvalReport, detail: Detail) -> String {
    let mut text = format!("# Evaluation by {}\n", report.tool);
    for block in blocks(report, detail, Budget::Column) {
        text += &format!("\n{} {}\n", "#".repeat(block.level + 2), block.heading);
        if let Some(table) = block.table {
            text += &format!("\n{}", table.to_markdown());
        }
        block.notes.iter().for_each(|note| text += &format!("\n{note}\n"));
    }
    text
}

fn blocks(report: &EvalReport, detail: Detail, budget: Budget) -> Vec<Block> {
    let mut blocks = Vec::new();
    for dataset in &report.datasets {
        let shown = report.shown(&dataset.name);
        let graded: Vec<&Evaluation> = shown.iter().collect();
        if graded.is_empty() {
            continue;
        }
        blocks.push(summary(report, dataset, &graded, detail, budget));
        if detail.breakdown {
            blocks.push(by_group(&graded));
            blocks.push(by_bin(&graded, dataset.split, detail));
            blocks.push(first_mistakes(&graded));
            blocks.extend(close_up::aftermath(&graded));
            blocks.push(close_up::worst_games(&graded));
        }
    }
    // What holds for several tables is said once, behind the last of them.
    for i in 0..blocks.len() {
        let (earlier, later) = blocks.split_at_mut(i + 1);
        let said_later = |note: &String| later.iter().any(|block| block.notes.contains(note));
        earlier[i].notes.retain(|note| !said_later(note));
    }
    blocks
}

fn summary(
    report: &EvalReport,
    dataset: &DatasetInfo,
    graded: &[&Evaluation],
    detail: Detail,
    place: Budget,
) -> Block {
    // Scores of trained models say little without their training budget.
    let read = |tracker: &str| match &report.trackers.iter().find(|t| t.label() == tracker)?.kind {
        TrackerKind::Model(model) => model.games_read,
        _ => None,
    };
    let budget = graded.iter().any(|evaluation| read(&evaluation.tracker).is_some());
    let mut head = vec!["tracker", "exact states %", "exact games %", "labelwise %", "loss"];
    let column = budget && place == Budget::Column;
    head.extend(column.then_some("read"));
    let mut table = Table::new(&head);
    let mut push = |mut row: Vec<String>, games: Option<u64>| {
        row.extend(column.then(|| games.map_or("-".into(), short_count)));
        table.push(row);
    };
    for evaluation in graded {
        let partial = if evaluation.complete { "" } else { " (partial)" };
        let row = vec![
            format!("{}{partial}", evaluation.tracker),
            with_interval(&evaluation.exact_state_accuracy),
            with_interval(&evaluation.trajectory_exactness),
            percent(&evaluation.labelwise_accuracy),
            loss(evaluation.loss.as_ref()),
        ];
        push(row, read(&evaluation.tracker));
    }
    let mut notes = Vec::new();
    if graded.iter().any(|e| e.exact_state_accuracy.interval.is_some()) {
        notes.push(format!(
            "[..] 95 % interval, {} resamples of whole games",
            report.resampling.resamples
        ));
    }
    let structured = |e: &&Evaluation| {
        report.trackers.iter().any(|t| t.is_structured() && t.label() == e.tracker)
    };
    if graded.iter().any(structured) {
        notes.push(STRUCTURED.to_string());
    }
    let rows = match dataset.split {
        Some(split) if !detail.no_paper_rows => {
            paper_rows(report, split, detail).into_iter().map(|row| (row, split)).collect()
        }
        _ => Vec::new(),
    };
    for (row, split) in &rows {
        let scores = row.scores(*split);
        let cells = vec![
            format!("paper: {}", row.name()),
            format!("{:.2}", scores.exact_percent),
            format!("{:.2}", scores.trajectory_percent),
            format!("{:.2}", scores.labelwise_percent),
            short_loss(scores.loss),
        ];
        push(cells, Some(paper::GAMES_READ));
    }
    if !rows.is_empty() {
        notes.push(paper::NOTE.to_string());
    }
    if column {
        notes.push(READ.to_string());
    } else if budget {
        let counts = || graded.iter().filter_map(|e| read(&e.tracker));
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let span = if least == most { String::new() } else { format!(" to {}", short_count(most)) };
        let paper = match rows.is_empty() {
            true => String::new(),
            false => format!(", by the paper's {}", short_count(paper::GAMES_READ)),
        };
        let least = short_count(least);
        notes.push(format!("games read in training: by models here {least}{span}{paper}"));
    }
    if let Some(limit) = dataset.limit {
        notes.push(format!("preview: at most the first {limit} games, not comparable"));
    }
    for evaluation in graded.iter().filter(|e| !e.complete) {
        notes.push(format!(
            "partial: `{}` was stopped after {} games",
            evaluation.tracker, evaluation.games
        ));
    }
    for evaluation in graded.iter().filter(|e| e.non_finite_steps > 0) {
        notes.push(format!(
            "`{}` gave non-finite logits at {} steps, counted as wrong",
            evaluation.tracker,
            grouped(evaluation.non_finite_steps)
        ));
    }
    let (games, steps) = graded.iter().map(|e| (e.games, e.steps)).max().unwrap_or_default();
    let ep = match dataset.en_passant {
        EnPassant::Always => "",
        EnPassant::Legal => ", en passant label only where a capture is legal",
    };
    let heading = format!(
        "{}: {} games, {} steps ({}{ep})",
        dataset.name,
        grouped(games),
        grouped(steps),
        describe(&dataset.source)
    );
    Block { level: 0, heading, table: Some(table), notes }
}

fn describe(source: &Source) -> String {
    match source {
        Source::RandomUniform { seed, min_fullmoves } => {
            format!("random-uniform, seed {seed}, at least {min_fullmoves} full moves")
        }
        Source::RuleStratum { policy, seed, min_fullmoves } => {
            format!("{}, seed {seed}, at least {min_fullmoves} full moves", policy.about())
        }
        Source::Stored { path, part: data::Split::All, .. } => path.clone(),
        Source::Stored { path, part: data::Split::Train, .. } => format!("{path}, training split"),
        Source::Stored { path, part: data::Split::Validation, .. } => {
            format!("{path}, validation split")
        }
        Source::File { path, skipped: 0 } => path.clone(),
        Source::File { path, skipped } => format!("{path}, {} games left out", grouped(*skipped)),
        Source::BuiltIn => "built-in".to_string(),
    }
}

fn paper_rows(report: &EvalReport, split: Split, detail: Detail) -> Vec<&'static paper::Row> {
    if detail.all_paper_rows {
        return paper::ROWS.iter().collect();
    }
    let mut rows: Vec<&paper::Row> = Vec::new();
    let best = paper::best(split);
    for tracker in &report.trackers {
        if let TrackerKind::Model(model) = &tracker.kind
            && let Some(row) = paper::row_of(&model.family, &model.size)
            && !rows.contains(&row)
        {
            rows.push(row);
        }
    }
    // The smallest models stand for what little training and parameters reach.
    let smallest = paper::ROWS
        .iter()
        .filter(|row| row.size == "d128/l1" && row.variant == Variant::Main)
        .max_by(|a, b| a.scores(split).exact_percent.total_cmp(&b.scores(split).exact_percent));
    for row in smallest.into_iter().chain([best]) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

fn by_group(graded: &[&Evaluation]) -> Block {
    let mut header = vec!["labels right %"];
    header.extend(LabelGroup::ALL.map(short_name));
    let mut table = Table::new(&header);
    for evaluation in graded {
        let shares = evaluation.label_groups.iter().map(|group| percent(&group.accuracy));
        table.push([evaluation.tracker.clone()].into_iter().chain(shares).collect());
    }
    Block { level: 1, heading: "By label group".into(), table: Some(table), notes: vec![] }
}

/// A label group's name for the head of a narrow column.
pub(super) const fn short_name(group: LabelGroup) -> &'static str {
    match group {
        LabelGroup::SideToMove => "side",
        LabelGroup::CastlingRights => "castling",
        LabelGroup::HalfmoveClock => "halfmove",
        LabelGroup::FullmoveNumber => "fullmove",
        LabelGroup::Pieces | LabelGroup::EnPassant => group.name(),
    }
}

/// As many bins as fit a terminal: the first, the last, and even steps between.
const BIN_COLUMNS: usize = 8;

fn by_bin(graded: &[&Evaluation], split: Option<Split>, detail: Detail) -> Block {
    let bins = graded.iter().map(|e| e.prefix_bins.len()).max().unwrap_or(0);
    let beside_paper = split == Some(Split::RandomUniform) && detail.all_paper_rows;
    let mut shown: Vec<usize> = if beside_paper {
        paper::BIN_STARTS.iter().map(|start| start / BIN_STEPS).collect()
    } else if bins <= BIN_COLUMNS {
        (0..bins).collect()
    } else {
        (0..BIN_COLUMNS).map(|i| i * (bins - 1) / (BIN_COLUMNS - 1)).collect()
    };
    shown.dedup();
    let mut header = vec!["exact states %".to_string()];
    header.extend(shown.iter().map(|bin| format!("{}-{}", bin * BIN_STEPS, (bin + 1) * BIN_STEPS)));
    let mut table = Table { header, rows: vec![] };
    let row = |name: String, cells: Vec<String>| [vec![name], cells].concat();
    if let Some(widest) = graded.iter().max_by_key(|e| e.prefix_bins.len()) {
        let steps = |&bin: &usize| {
            let bin = widest.prefix_bins.get(bin);
            grouped(bin.map_or(0, |bin| bin.exact_state_accuracy.denominator))
        };
        table.push(row("steps".into(), shown.iter().map(steps).collect()));
    }
    for evaluation in graded {
        let share = |&bin: &usize| {
            let bin = evaluation.prefix_bins.get(bin);
            bin.map_or("-".to_string(), |bin| percent(&bin.exact_state_accuracy))
        };
        table.push(row(evaluation.tracker.clone(), shown.iter().map(share).collect()));
    }
    let mut notes = Vec::new();
    if beside_paper {
        for (family, exact, _) in &paper::BINS_D512 {
            let cells = exact.iter().map(|percent| format!("{percent:.2}")).collect();
            table.push(row(format!("paper: {family} d512/l6"), cells));
        }
        notes.push(paper::NOTE.to_string());
    }
    Block { level: 1, heading: "By prefix bin (steps)".into(), table: Some(table), notes }
}

fn first_mistakes(graded: &[&Evaluation]) -> Block {
    let mut header = vec!["% of games", "none", "median step"];
    header.extend(LabelGroup::ALL.map(short_name));
    let mut table = Table::new(&header);
    for evaluation in graded {
        let of_games = |games: u64| percent(&Share::new(games, evaluation.games, None));
        let median = evaluation.median_first_mistake();
        let mut row = vec![
            evaluation.tracker.clone(),
            of_games(evaluation.trajectory_exactness.numerator),
            median.map_or("-".to_string(), |step| step.to_string()),
        ];
        row.extend(evaluation.first_mistake_groups.iter().map(|group| of_games(group.games)));
        table.push(row);
    }
    Block {
        level: 1,
        heading: "First mistakes: where, and which label groups they touch".into(),
        table: Some(table),
        notes: vec!["one mistake may touch several label groups at once".into()],
    }
}

/// A share in percent. Only a share of exactly 0 or 1 reads 0.00 or 100.00.
pub fn percent(share: &Share) -> String {
    match share.value() {
        None => "-".to_string(),
        Some(value) if value < 1.0 && value > 0.999_95 => ">99.99".to_string(),
        Some(value) if value > 0.0 && value < 0.000_05 => "<0.01".to_string(),
        Some(value) => format!("{:.2}", value * 100.0),
    }
}

fn with_interval(share: &Share) -> String {
    let value = percent(share);
    match share.interval {
        Some(i) => format!("{value} [{:.2}, {:.2}]", i.low * 100.0, i.high * 100.0),
        None => value,
    }
}

fn loss(loss: Option<&LossMean>) -> String {
    match loss {
        None => "-".to_string(),
        Some(loss) => loss.mean.map_or("not finite".to_string(), short_loss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_zero_and_one_read_as_such() {
        let read = |n, d| percent(&Share::new(n, d, None));
        assert_eq!(read(0, 0), "-");
        assert_eq!(read(0, 5), "0.00");
        assert_eq!(read(1, 1_000_000), "<0.01");
        assert_eq!(read(999_999, 1_000_000), ">99.99");
        assert_eq!(read(5, 5), "100.00");
        assert_eq!(read(2, 3), "66.67");
    }

    #[test]
    fn numbers_are_grouped_and_losses_short() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.13751, 1.29e-5, 4.43e17].map(short_loss),
            ["0.0000", "0.1375", "1.29e-5", "4.43e17"]
        );
    }
}
