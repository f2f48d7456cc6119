//! Many games in little memory: one buffer of moves, one of ids, and offsets into both.

use crate::chess::MoveToken;

use super::GameResult;

/// One game of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    /// The example id.
    pub id: String,
    /// The moves, without START.
    pub moves: Vec<MoveToken>,
    /// How it ended.
    pub result: GameResult,
}

/// Games side by side: two bytes a ply, an id and some twenty bytes a game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Games {
    ids: String,
    id_ends: Vec<u64>,
    moves: Vec<MoveToken>,
    move_ends: Vec<u64>,
    results: Vec<GameResult>,
}

impl Default for Games {
    fn default() -> Self {
        Games {
            ids: String::new(),
            id_ends: vec![0],
            moves: Vec::new(),
            move_ends: vec![0],
            results: Vec::new(),
        }
    }
}

impl Games {
    /// No games.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a game; `moves` are without START.
    pub fn push(&mut self, id: &str, moves: &[MoveToken], result: GameResult) {
        self.ids.push_str(id);
        self.id_ends.push(self.ids.len() as u64);
        self.moves.extend_from_slice(moves);
        self.move_ends.push(self.moves.len() as u64);
        self.results.push(result);
    }

    /// How many games there are.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Plies of all games together.
    pub fn total_plies(&self) -> u64 {
        self.moves.len() as u64
    }

    /// The id of game `index`.
    ///
    /// # Panics
    /// If there is no such game, as in the other accessors.
    pub fn id(&self, index: usize) -> &str {
        &self.ids[self.id_ends[index] as usize..self.id_ends[index + 1] as usize]
    }

    /// The moves of game `index`, without START.
    pub fn moves(&self, index: usize) -> &[MoveToken] {
        &self.moves[self.move_ends[index] as usize..self.move_ends[index + 1] as usize]
    }

    /// Plies of game `index`.
    pub fn plies(&self, index: usize) -> usize {
        (self.move_ends[index + 1] - self.move_ends[index]) as usize
    }

    /// The result of game `index`.
    pub fn result(&self, index: usize) -> GameResult {
        self.results[index]
    }

    /// Ids and moves, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[MoveToken])> + '_ {
        (0..self.len()).map(|i| (self.id(i), self.moves(i)))
    }
}

impl<'a> Extend<&'a Game> for Games {
    fn extend<T: IntoIterator<Item = &'a Game>>(&mut self, games: T) {
        for game in games {
            self.push(&game.id, &game.moves, game.result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_come_back_as_pushed() {
        let tokens: Vec<_> = (0..5).map(|i| MoveToken::new(i).unwrap()).collect();
        let mut games = Games::new();
        games.push("a", &tokens[..2], GameResult::Draw);
        games.push("", &[], GameResult::Unknown);
        games.push("ccc", &tokens[2..], GameResult::WhiteWins);
        assert_eq!((games.len(), games.total_plies()), (3, 5));
        assert_eq!((games.id(2), games.moves(2), games.plies(1)), ("ccc", &tokens[2..], 0));
        assert_eq!(games.result(0), GameResult::Draw);
        assert_eq!(games.iter().map(|(id, _)| id).collect::<Vec<_>>(), ["a", "", "ccc"]);
    }
}
