//! Links: what is on screen as the part of a URL behind `#`, and back.
//!
//! `#m=transition&c=transformer-d128&p=23&v=diff&o=b&g=2s.<moves>`: the models, the ply, the view, the orientation, the
//! game. Moves are written as numbers among the legal moves of their position (ordered by token), each in as few bits as
//! that takes, six bits a letter (base64url): 300 plies stay under 420 letters. The number of plies stands before them
//! in base 36, and two letters of checksum behind, so that a damaged link never shows another game.

use cwm_core::chess::MoveToken;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Position};

/// What a board shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The game as it is.
    Truth,
    /// The model's board.
    Model,
    /// The game, with what the model has wrong marked on it.
    #[default]
    Diff,
}

impl View {
    /// Every view.
    pub const ALL: [View; 3] = [View::Truth, View::Model, View::Diff];

    /// The view's name in links.
    pub const fn name(self) -> &'static str {
        match self {
            View::Truth => "truth",
            View::Model => "model",
            View::Diff => "diff",
        }
    }
}

/// A page of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tab {
    /// The board.
    #[default]
    Explore,
    /// Whole sets of games.
    Grade,
    /// What all of it means.
    About,
}

impl Tab {
    /// Every tab, in order.
    pub const ALL: [Tab; 3] = [Tab::Explore, Tab::Grade, Tab::About];

    /// The tab's name in links.
    pub const fn name(self) -> &'static str {
        match self {
            Tab::Explore => "explore",
            Tab::Grade => "grade",
            Tab::About => "about",
        }
    }
}

/// What a link holds. Everything is optional: an empty link opens the page as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The tab, if it is not Explore.
    pub tab: Tab,
    /// The model's name.
    pub model: Option<String>,
    /// The name of the model beside it; empty for none.
    pub second: Option<String>,
    /// The moves, without START.
    pub moves: Option<Vec<MoveToken>>,
    /// The ply shown.
    pub ply: Option<usize>,
    /// Whether Black is at the bottom.
    pub flipped: bool,
    /// What the board shows.
    pub view: Option<View>,
}

/// A link that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the link's game is damaged: {0}; copy the link again")]
pub struct LinkError(String);

/// Plies beyond which a game is not put into a link.
pub const LINK_PLIES_MAX: usize = 4096;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Link {
    /// The link, without its `#`.
    pub fn write(&self) -> String {
        let mut parts = Vec::new();
        if self.tab != Tab::Explore {
            parts.push(format!("t={}", self.tab.name()));
        }
        for (key, name) in [("m", &self.model), ("c", &self.second)] {
            if let Some(name) = name {
                parts.push(format!("{key}={}", escape(name)));
            }
        }
        if let Some(ply) = self.ply {
            parts.push(format!("p={ply}"));
        }
        if let Some(view) = self.view {
            parts.push(format!("v={}", view.name()));
        }
        if self.flipped {
            parts.push("o=b".to_string());
        }
        if let Some(moves) = self.moves.as_ref().filter(|moves| moves.len() <= LINK_PLIES_MAX) {
            parts.push(format!("g={}", encode(moves)));
        }
        parts.join("&")
    }

    /// Reads a link, with or without its `#`. Keys and values that mean nothing are passed over.
    ///
    /// # Errors
    /// [`LinkError`] if its game is damaged.
    pub fn read(hash: &str) -> Result<Self, LinkError> {
        let mut link = Link::default();
        for part in hash.trim_start_matches('#').split('&') {
            let Some((key, value)) = part.split_once('=') else { continue };
            match key {
                "t" => {
                    let tab = Tab::ALL.into_iter().find(|tab| tab.name() == value);
                    link.tab = tab.unwrap_or_default();
                }
                "m" => link.model = Some(unescape(value)).filter(|name| !name.is_empty()),
                "c" => link.second = Some(unescape(value)),
                "p" => link.ply = value.parse().ok(),
                "v" => link.view = View::ALL.into_iter().find(|view| view.name() == value),
                "o" => link.flipped = value == "b",
                "g" => link.moves = Some(decode(value)?),
                _ => {}
            }
        }
        Ok(link)
    }
}

/// Legal moves in the order that links number them.
fn ordered(position: &Chess) -> Vec<(MoveToken, shakmaty::Move)> {
    let mut legal: Vec<_> =
        position.legal_moves().into_iter().map(|m| (MoveToken::from_move(m), m)).collect();
    legal.sort_unstable_by_key(|(token, _)| *token);
    legal
}

/// Bits that a number below `n` takes.
const fn bits_below(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

fn encode(moves: &[MoveToken]) -> String {
    let mut position = Chess::default();
    let (mut letters, mut pending, mut held) = (String::new(), 0_u32, 0_u32);
    let mut plies = 0;
    for token in moves {
        let legal = ordered(&position);
        let Some(index) = legal.iter().position(|(known, _)| known == token) else { break };
        let bits = bits_below(legal.len());
        pending = (pending << bits) | index as u32;
        held += bits;
        while held >= 6 {
            held -= 6;
            letters.push(LETTERS[(pending >> held) as usize & 63] as char);
        }
        pending &= (1 << held) - 1;
        position.play_unchecked(legal[index].1);
        plies += 1;
    }
    if held > 0 {
        letters.push(LETTERS[(pending << (6 - held)) as usize & 63] as char);
    }
    let check = checksum(&moves[..plies]);
    letters.push(LETTERS[check as usize >> 6] as char);
    letters.push(LETTERS[check as usize & 63] as char);
    format!("{}.{letters}", base36(plies))
}

fn decode(text: &str) -> Result<Vec<MoveToken>, LinkError> {
    let fail = |what: &str| LinkError(what.to_string());
    let (plies, letters) = text.split_once('.').ok_or_else(|| fail("it has no moves"))?;
    let plies = usize::from_str_radix(plies, 36).map_err(|_| fail("its length is no number"))?;
    if plies > LINK_PLIES_MAX {
        return Err(fail("it is too long"));
    }
    let sixes = letters.bytes().map(|letter| LETTERS.iter().position(|&l| l == letter));
    let sixes: Vec<u32> = sixes
        .map(|six| six.map(|six| six as u32))
        .collect::<Option<_>>()
        .ok_or_else(|| fail("a letter does not belong there"))?;
    let [sixes @ .., high, low] = &sixes[..] else { return Err(fail("it was cut short")) };
    let mut sixes = sixes.iter();
    let (mut pending, mut held) = (0_u32, 0_u32);
    let mut position = Chess::default();
    let mut moves = Vec::with_capacity(plies);
    for ply in 1..=plies {
        let legal = ordered(&position);
        let bits = bits_below(legal.len());
        while held < bits {
            let six = sixes.next().ok_or_else(|| fail("it was cut short"))?;
            pending = (pending << 6) | six;
            held += 6;
        }
        held -= bits;
        let index = (pending >> held) as usize;
        pending &= (1 << held) - 1;
        let (token, m) =
            legal.get(index).ok_or_else(|| fail(&format!("ply {ply} is no legal move")))?;
        moves.push(*token);
        position.play_unchecked(*m);
    }
    if pending != 0 || sixes.next().is_some() || checksum(&moves) != (high << 6 | low) {
        return Err(fail("it does not add up"));
    }
    Ok(moves)
}

/// Twelve bits over all moves (FNV-1a, folded).
fn checksum(moves: &[MoveToken]) -> u32 {
    let mix =
        |hash: u32, token: &MoveToken| (hash ^ u32::from(token.id())).wrapping_mul(16_777_619);
    let hash = moves.iter().fold(2_166_136_261, mix);
    (hash ^ (hash >> 12) ^ (hash >> 24)) & 0xfff
}

fn base36(mut number: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// Percent-escapes what could end a value or confuse a reader of URLs.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte) {
            escaped.push(byte as char);
        } else {
            escaped += &format!("%{byte:02X}");
        }
    }
    escaped
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let code = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        plain.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use cwm_core::chess::{parse::parse_games, random::RandomPlay};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_link_is_what_the_docs_say() {
        let moves = parse_games("e4 e5 Nf3").unwrap().remove(0).moves;
        let link = Link {
            model: Some("transition".into()),
            second: Some("a b&c".into()),
            moves: Some(moves),
            ply: Some(2),
            flipped: true,
            view: Some(View::Model),
            tab: Tab::Explore,
        };
        let text = link.write();
        assert!(text.starts_with("m=transition&c=a%20b%26c&p=2&v=model&o=b&g=3."), "{text}");
        assert_eq!(Link::read(&format!("#{text}")), Ok(link));
        assert_eq!(Link::read(""), Ok(Link::default()));
        assert_eq!(Link::read("#t=grade&x=1&p=x").unwrap().tab, Tab::Grade);
    }

    #[test]
    fn three_hundred_plies_stay_well_under_two_thousand_letters() {
        for game in RandomPlay::new(1, 150).take(20) {
            let moves = game.moves[..300].to_vec();
            let link = Link { moves: Some(moves), ..Link::default() };
            assert!(link.write().len() < 420, "{}", link.write().len());
        }
    }

    #[test]
    fn damage_is_noticed() {
        let moves = RandomPlay::new(5, 40).next().unwrap().moves;
        let good = encode(&moves[..80]).into_bytes();
        let (mut tried, mut missed) = (0, 0);
        for at in 3..good.len() {
            for change in 1..64 {
                let mut bad = good.clone();
                let was = LETTERS.iter().position(|&l| l == bad[at]).unwrap();
                bad[at] = LETTERS[(was + change) % 64];
                tried += 1;
                missed += usize::from(decode(&String::from_utf8(bad).unwrap()).is_ok());
            }
        }
        // Twelve bits of checksum miss one damage in 4,096 that leaves all moves legal.
        assert!(missed * 1000 < tried, "{missed} of {tried}");
        let cut = String::from_utf8(good[..good.len() - 4].to_vec()).unwrap();
        assert!(decode(&cut).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn games_survive(seed in 0_u64..1000, cut in 0_usize..400) {
            let mut moves = RandomPlay::new(seed, 1).next().unwrap().moves;
            moves.truncate(cut);
            let text = encode(&moves);
            prop_assert_eq!(decode(&text), Ok(moves));
        }

        #[test]
        fn any_hash_is_read_or_refused(hash in "\\PC{0,80}") {
            let _ = Link::read(&hash);
        }

        #[test]
        fn names_survive(name in "\\PC{1,20}") {
            let link = Link { model: Some(name), ..Link::default() };
            prop_assert_eq!(Link::read(&link.write()), Ok(link));
        }
    }
}
