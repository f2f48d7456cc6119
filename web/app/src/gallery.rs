//! The gallery: the famous games that ship with cwm, and games in which a tracker goes wrong, found by grading them.

use cwm_core::{
    baseline::Baseline,
    chess::{
        MoveToken, Trajectory,
        label::{LabelGroup, label_name},
        parse::{ParsedGame, parse_games},
    },
    evaluate::predict,
    tracker::ready,
};
use cwm_protocol::WorstGame;
use serde::Serialize;

use crate::{
    input::game_title,
    line::{Line, Origin},
};

const CLASSICS_PGN: &str = include_str!("../../../models/splits/classics/classics.pgn");

/// The classic that a first visitor sees: short, and with a queen sacrifice that networks stumble over.
pub const OPENING: usize = 10;

/// Games of one network that are listed.
pub const WORST_LISTED: u32 = 8;

/// Labels that an entry names one by one.
const LABELS_NAMED: usize = 5;

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its place: what the command names.
    pub item: usize,
    /// What it is called.
    pub title: String,
    /// What there is to see.
    pub about: String,
    #[serde(skip)]
    game: Source,
    #[serde(skip)]
    ply: Option<usize>,
    #[serde(skip)]
    tracker: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Classic(usize),
    Moves(Vec<MoveToken>),
}

/// Entries that belong together.
#[derive(Debug, Clone, Serialize)]
pub struct Section<'a> {
    /// What they have in common.
    pub title: String,
    /// A sentence about them.
    pub about: String,
    /// The entries.
    pub items: Vec<&'a Item>,
}

/// All entries.
#[derive(Debug, Clone, Default)]
pub struct Gallery {
    classics: Vec<ParsedGame>,
    items: Vec<Item>,
    found: bool,
}

impl Gallery {
    /// The famous games; what goes wrong in them is found later.
    pub fn new() -> Self {
        // The file is the crate's own, and a test reads it.
        let classics = parse_games(CLASSICS_PGN).unwrap_or_default();
        let item = |(i, game): (usize, &ParsedGame)| {
            let event = game.tag("Event").unwrap_or_default();
            let year: String = game.tag("Date").unwrap_or_default().chars().take(4).collect();
            Item {
                item: i,
                title: game_title(game),
                about: format!("{event}, {year}, {} plies", game.moves.len()),
                game: Source::Classic(i),
                ply: None,
                tracker: None,
            }
        };
        let items = classics.iter().enumerate().map(item).collect();
        Gallery { classics, items, found: false }
    }

    /// Lets the baselines play the classics, once: for each of them and each label group, the game in which it errs
    /// there first.
    pub fn find_failures(&mut self) {
        if std::mem::replace(&mut self.found, true) {
            return;
        }
        let baselines =
            [Baseline::NaiveMover, Baseline::NaiveMoverRights, Baseline::NaiveMoverRightsEp];
        for baseline in baselines {
            let mut earliest: [Option<Item>; LabelGroup::ALL.len()] = Default::default();
            for (index, game) in self.classics.iter().enumerate() {
                let Some((step, wrong)) = first_mistake(baseline, &game.moves) else { continue };
                let place = self.items.len();
                let item = || Item {
                    item: place,
                    title: format!("{} after {}", baseline.name(), numbered(&game.moves, step)),
                    about: format!("{} \u{2013} {}", named(&wrong), game_title(game)),
                    game: Source::Classic(index),
                    ply: Some(step),
                    tracker: Some(baseline.name().into()),
                };
                let group = LabelGroup::of(wrong[0]);
                if let Some(slot) = LabelGroup::ALL.iter().position(|&known| known == group) {
                    let earlier = earliest[slot].as_ref().and_then(|known| known.ply);
                    if earlier.is_none_or(|known| step < known) {
                        earliest[slot] = Some(item());
                    }
                }
            }
            for item in earliest.into_iter().flatten() {
                self.items.push(Item { item: self.items.len(), ..item });
            }
        }
    }

    /// Lists the games on which a network did worst; replaces what was listed of it before.
    pub fn add_worst(&mut self, worst: &[WorstGame]) {
        for game in worst.iter().take(WORST_LISTED as usize) {
            let moves: Vec<MoveToken> =
                game.tokens.iter().filter_map(|&id| MoveToken::try_from(id).ok()).collect();
            let place = self.items.len();
            let step = game.first_mistake as usize;
            let about = format!(
                "exact at {} of {} steps, first mistake after {}",
                game.exact_steps,
                moves.len() + 1,
                numbered(&moves, step)
            );
            let item = Item {
                item: place,
                title: game.title.clone().unwrap_or_else(|| format!("game {}", game.game + 1)),
                about,
                game: Source::Moves(moves),
                ply: Some(step),
                tracker: Some(game.tracker.clone()),
            };
            let known = self
                .items
                .iter()
                .any(|known| (&known.tracker, &known.game) == (&item.tracker, &item.game));
            if !known {
                self.items.push(item);
            }
        }
    }

    /// Whether a network's worst games are listed.
    pub fn has(&self, tracker: &str) -> bool {
        self.items.iter().any(|item| item.tracker.as_deref() == Some(tracker))
    }

    /// The entries, by what they show.
    pub fn sections(&self) -> Vec<Section<'_>> {
        let classics = Section {
            title: "Famous games".into(),
            about: "Human play from 1834 to 2016, full of castling, en passant and promotion."
                .into(),
            items: self.items.iter().filter(|item| item.tracker.is_none()).collect(),
        };
        let mut sections = Vec::new();
        let mut trackers: Vec<&str> =
            self.items.iter().filter_map(|item| item.tracker.as_deref()).collect();
        trackers.dedup();
        for tracker in trackers {
            let baseline = Baseline::from_name(tracker).is_some();
            sections.push(Section {
                title: format!("Where {tracker} goes wrong"),
                about: if baseline {
                    "The earliest mistake in each label group, found by letting it play the famous games.".into()
                } else {
                    "Its worst famous games, found by grading all of them here.".into()
                },
                items: self
                    .items
                    .iter()
                    .filter(|item| item.tracker.as_deref() == Some(tracker))
                    .collect(),
            });
        }
        // What goes wrong is what the page is about; networks before baselines.
        sections.sort_by_key(|section| section.title.contains("naive"));
        sections.push(classics);
        sections
    }

    /// The game of an entry.
    pub fn line(&self, item: usize) -> Option<Line> {
        Some(match &self.items.get(item)?.game {
            Source::Classic(index) => Line::parsed(self.classics.get(*index)?, Origin::Gallery),
            Source::Moves(moves) => {
                let classic = self.classics.iter().find(|game| game.moves == *moves);
                classic.map_or_else(
                    || Line::new(moves, Origin::Gallery),
                    |game| Line::parsed(game, Origin::Gallery),
                )
            }
        })
    }

    /// The name of an entry.
    pub fn title(&self, item: usize) -> String {
        self.items.get(item).map_or_else(String::new, |item| item.title.clone())
    }

    /// The ply that an entry opens at, if not at the start.
    pub fn ply(&self, item: usize) -> Option<usize> {
        self.items.get(item)?.ply
    }

    /// The tracker that an entry is about.
    pub fn tracker(&self, item: usize) -> Option<&str> {
        self.items.get(item)?.tracker.as_deref()
    }
}

/// Where a baseline goes wrong first, and the labels that are wrong there.
fn first_mistake(baseline: Baseline, moves: &[MoveToken]) -> Option<(usize, Vec<usize>)> {
    let game = Trajectory::replay(moves);
    let prediction = ready(predict(&baseline, &game))?.ok()?;
    game.states().iter().zip(&prediction.states).enumerate().find_map(|(step, (truth, named))| {
        let wrong: Vec<usize> = truth.differing_labels(named).collect();
        (!wrong.is_empty()).then_some((step, wrong))
    })
}

fn named(wrong: &[usize]) -> String {
    let names: Vec<String> = wrong.iter().take(LABELS_NAMED).map(|&l| label_name(l)).collect();
    let more = if wrong.len() > LABELS_NAMED { ", \u{2026}" } else { "" };
    format!("{}{more} wrong", names.join(", "))
}

fn numbered(moves: &[MoveToken], ply: usize) -> String {
    Line::new(&moves[..ply.min(moves.len())], Origin::Gallery).numbered(ply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_is_a_short_classic() {
        let gallery = Gallery::new();
        assert_eq!(gallery.title(OPENING), "Richard Reti \u{2013} Savielly Tartakower");
        assert_eq!(gallery.line(OPENING).unwrap().plies(), 21);
        assert_eq!(gallery.sections().len(), 1);
        assert_eq!(gallery.sections()[0].items.len(), 44);
    }

    #[test]
    fn failures_are_found_and_are_mistakes() {
        let mut gallery = Gallery::new();
        gallery.find_failures();
        gallery.find_failures();
        let sections = gallery.sections();
        assert_eq!(sections.len(), 4, "three naive movers and the classics");
        for (place, item) in gallery.items.iter().enumerate() {
            assert_eq!(item.item, place);
            let Some(tracker) = &item.tracker else { continue };
            let baseline = Baseline::from_name(tracker).unwrap();
            let line = gallery.line(place).unwrap();
            let (step, wrong) = first_mistake(baseline, line.moves()).unwrap();
            assert_eq!(Some(step), item.ply);
            assert!(!wrong.is_empty());
        }
        let castling =
            gallery.items.iter().find(|item| item.title.starts_with("naive-mover+rights+ep"));
        assert!(castling.unwrap().title.contains("O-O"), "{castling:?}");
    }

    #[test]
    fn worst_games_are_listed_once_and_found_among_the_classics() {
        let mut gallery = Gallery::new();
        let worst = WorstGame {
            tracker: "net".into(),
            dataset: "classics".into(),
            game: 4,
            title: Some("A game".into()),
            tokens: gallery.classics[4].moves.iter().map(|token| token.id()).collect(),
            first_mistake: 11,
            exact_steps: 15,
            wrong_labels: 40,
        };
        gallery.add_worst(std::slice::from_ref(&worst));
        gallery.add_worst(&[worst]);
        assert!(gallery.has("net"));
        assert_eq!(gallery.items.len(), 45);
        assert_eq!(gallery.line(44).unwrap().tag("White"), Some("Paul Morphy"));
        assert_eq!((gallery.ply(44), gallery.tracker(44)), (Some(11), Some("net")));
        assert!(
            gallery.items[44].about.contains("exact at 15 of 34 steps, first mistake after 6. Bc4")
        );
    }
}
