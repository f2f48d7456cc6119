//! The keys: one table, for the handler and for the help that shows it.

use serde::Serialize;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// One ply back.
    Previous,
    /// One ply on.
    Next,
    /// To the start.
    First,
    /// To the end.
    Last,
    /// To the next mistake.
    NextMistake,
    /// To the mistake before.
    PreviousMistake,
    /// To the first mistake.
    FirstMistake,
    /// The board turned round.
    Flip,
    /// The next of Truth, Model, Diff.
    View,
    /// A new random game.
    Random,
    /// Into the input box.
    Input,
    /// The help.
    Help,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The keys, as `KeyboardEvent.key` names them.
    pub keys: &'static [&'static str],
    /// How they are shown.
    pub shown: &'static str,
    /// What they do.
    pub action: Action,
    /// That in words.
    pub about: &'static str,
}

/// Every key. Upper case letters are keys with Shift.
pub const TABLE: [Binding; 12] = [
    row(&["ArrowLeft"], "\u{2190}", Action::Previous, "one move back"),
    row(&["ArrowRight"], "\u{2192}", Action::Next, "one move on"),
    row(&["Home", "ArrowUp"], "Home \u{2191}", Action::First, "start of the game"),
    row(&["End", "ArrowDown"], "End \u{2193}", Action::Last, "end of the game"),
    row(&["e"], "e", Action::NextMistake, "next mistake"),
    row(&["E"], "Shift e", Action::PreviousMistake, "mistake before"),
    row(&["m"], "m", Action::FirstMistake, "first mistake"),
    row(&["f"], "f", Action::Flip, "flip the board"),
    row(&["d"], "d", Action::View, "next view: Diff, Truth, Model"),
    row(&["r"], "r", Action::Random, "new random game"),
    row(&["/"], "/", Action::Input, "type a move or a game"),
    row(&["?"], "?", Action::Help, "this help"),
];

const fn row(
    keys: &'static [&'static str],
    shown: &'static str,
    action: Action,
    about: &'static str,
) -> Binding {
    Binding { keys, shown, action, about }
}

/// What a key does, if it does anything.
pub fn action(key: &str) -> Option<Action> {
    TABLE.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.action)
}

/// A row of the help.
#[derive(Debug, Clone, Serialize)]
pub struct HelpRow {
    /// The keys.
    pub keys: &'static str,
    /// What they do.
    pub about: &'static str,
}

/// The rows of the help.
pub fn help() -> Vec<HelpRow> {
    TABLE.iter().map(|binding| HelpRow { keys: binding.shown, about: binding.about }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_does_two_things() {
        let mut keys: Vec<&str> = TABLE.iter().flat_map(|binding| binding.keys).copied().collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn the_keys_are_those_of_the_checklist() {
        for (key, expected) in [
            ("ArrowLeft", Action::Previous),
            ("ArrowRight", Action::Next),
            ("Home", Action::First),
            ("ArrowUp", Action::First),
            ("End", Action::Last),
            ("ArrowDown", Action::Last),
            ("e", Action::NextMistake),
            ("E", Action::PreviousMistake),
            ("f", Action::Flip),
            ("d", Action::View),
            ("r", Action::Random),
            ("/", Action::Input),
            ("?", Action::Help),
        ] {
            assert_eq!(action(key), Some(expected), "{key}");
        }
        assert_eq!(action("x"), None);
    }
}
