//! Many games in little memory: one buffer of moves, one of ids, and offsets into both.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::GameResult;
use crate::chess::MoveToken;

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

    /// At most `count` of the games, drawn with `seed`, in the order in which they stand here, with their places. Of one
    /// seed a smaller draw is part of every larger one.
    pub fn drawn(&self, count: usize, seed: u64) -> (Games, Vec<usize>) {
        let mut places: Vec<usize> = (0..self.len()).collect();
        places.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        places.truncate(count);
        places.sort_unstable();
        let mut games = Games::new();
        for &place in &places {
            games.push(self.id(place), self.moves(place), self.result(place));
        }
        (games, places)
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

    #[test]
    fn draws_keep_the_order_and_hold_smaller_ones() {
        let token = |i: usize| MoveToken::new(i as u32).unwrap();
        let mut games = Games::new();
        for i in 0..50 {
            games.push(&i.to_string(), &[token(i)], GameResult::Draw);
        }
        let (few, places) = games.drawn(10, 7);
        let (more, more_places) = games.drawn(20, 7);
        assert_eq!((few.len(), more.len()), (10, 20));
        assert!(places.is_sorted() && places.iter().all(|place| more_places.contains(place)));
        for (i, &place) in places.iter().enumerate() {
            assert_eq!((few.id(i), few.moves(i)), (games.id(place), games.moves(place)));
        }
        assert_ne!(places, games.drawn(10, 8).1);
        assert_eq!(games.drawn(60, 7).0, games);
    }
}
