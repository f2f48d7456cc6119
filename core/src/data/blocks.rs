//! Cuts a stream of text into blocks that end where a game ends, without ever holding more than a bounded piece of it.

use std::io::{self, Read};

/// Bytes that a block aims at.
pub const BLOCK_BYTES: usize = 1 << 20;
/// Bytes that a single game may have; a longer one is dropped and counted.
pub const MAX_GAME_BYTES: usize = 8 << 20;

/// A piece of the text.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    /// Whole games.
    Text(Vec<u8>),
    /// Here stood a game (or line) of more than [`MAX_GAME_BYTES`].
    TooLarge,
}

/// Where blocks may be cut.
pub trait Cut {
    /// The end of the last whole game in `text`, which begins at the start of a game; `None` if no game ends here.
    fn last_end(&self, text: &[u8]) -> Option<usize>;

    /// A place in `text` where a new game surely begins, to go on from after an oversized one.
    fn resume_at(&self, text: &[u8]) -> Option<usize>;
}

/// Cuts at line ends.
#[derive(Debug, Clone, Copy)]
pub struct AtLines;

impl Cut for AtLines {
    fn last_end(&self, text: &[u8]) -> Option<usize> {
        text.iter().rposition(|&b| b == b'\n').map(|at| at + 1)
    }

    fn resume_at(&self, text: &[u8]) -> Option<usize> {
        text.iter().position(|&b| b == b'\n').map(|at| at + 1)
    }
}

/// Iterates over the blocks of a text. An error is the last item.
#[derive(Debug)]
pub struct Blocks<R, C> {
    text: R,
    cut: C,
    rest: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// Inside an oversized game.
    Dropping,
    Done,
}

impl<R: Read, C: Cut> Blocks<R, C> {
    /// Blocks of `text`, of which `head` has been read already.
    pub fn new(text: R, cut: C, head: Vec<u8>) -> Self {
        Blocks { text, cut, rest: head, state: State::Reading }
    }

    /// Reads until `rest` has `wanted` bytes; returns whether the text has ended.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        let missing = wanted.saturating_sub(self.rest.len()) as u64;
        let read = Read::by_ref(&mut self.text).take(missing).read_to_end(&mut self.rest)?;
        Ok((read as u64) < missing)
    }

    fn step(&mut self) -> io::Result<Option<Block>> {
        let mut wanted = BLOCK_BYTES;
        loop {
            let ended = self.fill(wanted)?;
            match self.state {
                State::Done => return Ok(None),
                State::Dropping => {
                    match self.cut.resume_at(&self.rest) {
                        Some(at) => {
                            self.rest.drain(..at);
                            self.state = State::Reading;
                        }
                        None if ended => self.state = State::Done,
                        // A mark may straddle two reads: keep a little.
                        None => {
                            let keep = self.rest.len().min(64);
                            self.rest.drain(..self.rest.len() - keep);
                        }
                    }
                }
                State::Reading if ended => {
                    self.state = State::Done;
                    if self.rest.is_empty() {
                        return Ok(None);
                    }
                    return Ok(Some(Block::Text(std::mem::take(&mut self.rest))));
                }
                State::Reading => {
                    if let Some(at) = self.cut.last_end(&self.rest) {
                        let rest = self.rest.split_off(at);
                        return Ok(Some(Block::Text(std::mem::replace(&mut self.rest, rest))));
                    }
                    if self.rest.len() >= MAX_GAME_BYTES {
                        self.state = State::Dropping;
                        return Ok(Some(Block::TooLarge));
                    }
                    wanted = (2 * self.rest.len()).clamp(BLOCK_BYTES, MAX_GAME_BYTES);
                }
            }
        }
    }
}

impl<R: Read, C: Cut> Iterator for Blocks<R, C> {
    type Item = io::Result<Block>;

    fn next(&mut self) -> Option<io::Result<Block>> {
        let item = self.step().transpose();
        if matches!(item, Some(Err(_))) {
            self.state = State::Done;
            self.rest.clear();
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &[u8]) -> Vec<Block> {
        Blocks::new(text, AtLines, Vec::new()).map(Result::unwrap).collect()
    }

    #[test]
    fn blocks_hold_whole_lines_and_lose_nothing() {
        let mut text = Vec::new();
        for i in 0..200_000 {
            text.extend_from_slice(format!("line {i} of many\n").as_bytes());
        }
        text.extend_from_slice(b"the last, without an end");
        let mut joined = Vec::new();
        let blocks = blocks(&text);
        assert!(blocks.len() > 2);
        for block in &blocks[..blocks.len() - 1] {
            let Block::Text(bytes) = block else { panic!("dropped a line") };
            assert_eq!(bytes.last(), Some(&b'\n'));
            assert!(bytes.len() <= BLOCK_BYTES);
            joined.extend_from_slice(bytes);
        }
        let Block::Text(last) = &blocks[blocks.len() - 1] else { panic!("dropped a line") };
        joined.extend_from_slice(last);
        assert!(joined == text);
        assert_eq!(Blocks::new(&b""[..], AtLines, Vec::new()).count(), 0);
    }

    #[test]
    fn a_giant_line_is_dropped_without_being_held() {
        let giant = io::repeat(b'x').take(5 * MAX_GAME_BYTES as u64);
        let text = (&b"before\n"[..]).chain(giant).chain(&b"\nafter\n"[..]);
        let blocks: Vec<_> = Blocks::new(text, AtLines, Vec::new()).map(Result::unwrap).collect();
        assert_eq!(
            blocks,
            [Block::Text(b"before\n".to_vec()), Block::TooLarge, Block::Text(b"after\n".to_vec())]
        );
    }
}
