//! The 75 labels in words: names, what each class means, and how sure a model is of them.

use cwm_core::chess::{
    explain::{name, role_name},
    label::{CASTLING, EP_FILE, EP_RANK, HALFMOVE, LABELS, SIDE, SQUARES, label_name},
};
use serde::Serialize;
use shakmaty::{Color, Role};

/// A label's name in prose.
pub fn title(label: usize) -> String {
    match label {
        0..SQUARES => label_name(label),
        SIDE => "side to move".into(),
        CASTLING..EP_FILE => [
            "White castles short",
            "White castles long",
            "Black castles short",
            "Black castles long",
        ][label - CASTLING]
            .into(),
        EP_FILE => "en passant file".into(),
        EP_RANK => "en passant rank".into(),
        HALFMOVE => "halfmove clock, high byte".into(),
        72 => "halfmove clock, low byte".into(),
        73 => "fullmove number, high byte".into(),
        _ => "fullmove number, low byte".into(),
    }
}

/// What a class of a label means.
pub fn words(label: usize, class: u8) -> String {
    match label {
        0..SQUARES => piece_words(class),
        SIDE => if class == 0 { "White" } else { "Black" }.into(),
        CASTLING..EP_FILE => if class == 0 { "gone" } else { "held" }.into(),
        EP_FILE..HALFMOVE => cwm_core::trace::class_name(label, class),
        _ => class.to_string(),
    }
}

fn piece_words(class: u8) -> String {
    const ROLES: [Role; 6] =
        [Role::Pawn, Role::Knight, Role::Bishop, Role::Rook, Role::Queen, Role::King];
    let Some(index) = class.checked_sub(1) else { return "empty".into() };
    let color = if index < 6 { Color::White } else { Color::Black };
    format!("{} {}", name(color).to_lowercase(), role_name(ROLES[usize::from(index % 6)]))
}

/// A class and its probability, in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Likely {
    /// The class in words.
    pub words: String,
    /// Its probability, if the model gives any.
    pub probability: Option<f32>,
    /// The probability as text.
    pub percent: String,
    /// Whether it is the truth.
    pub true_class: bool,
}

/// A probability in percent. None reads as certain: what is shown is rounded, and a softmax never is.
pub fn percent(probability: f32) -> String {
    if probability < 0.0005 {
        "<0.1 %".to_string()
    } else if probability >= 0.9995 {
        ">99.9 %".to_string()
    } else {
        format!("{:.1} %", probability * 100.0)
    }
}

/// The auxiliary labels: all that are no squares.
pub const AUXILIARY: std::ops::Range<usize> = SQUARES..LABELS;

#[cfg(test)]
mod tests {
    use cwm_core::chess::label::class_count;

    use super::*;

    #[test]
    fn every_class_of_every_label_has_words_of_its_own() {
        for label in 0..LABELS {
            let mut all: Vec<String> =
                (0..class_count(label)).map(|class| words(label, class as u8)).collect();
            assert!(all.iter().all(|words| !words.is_empty() && words != "?"), "{}", title(label));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), class_count(label), "{}", title(label));
        }
        assert_eq!(
            [words(0, 0), words(0, 1), words(63, 12)],
            ["empty", "white pawn", "black king"]
        );
    }

    #[test]
    fn titles_differ() {
        let mut titles: Vec<String> = (0..LABELS).map(title).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), LABELS);
    }

    #[test]
    fn probabilities_never_read_as_certain() {
        let read = [0.0, 0.0001, 0.5, 0.9994, 0.9996, 1.0].map(percent);
        assert_eq!(read, ["<0.1 %", "<0.1 %", "50.0 %", "99.9 %", ">99.9 %", ">99.9 %"]);
    }
}
