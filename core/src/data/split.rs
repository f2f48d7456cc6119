//! Which games validate: a split by hash of the example id, the same in every run (paper, section B.1).

use md5::{Digest, Md5};

/// Buckets that ids are hashed into.
pub const BUCKETS: u64 = 10_000;
/// Ids in a bucket below this one validate: 0.5 % of games.
pub const VALIDATION_BUCKETS: u64 = 50;

/// A part of a dataset.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Every game.
    #[default]
    All,
    /// The games that train.
    Train,
    /// The games that validate.
    Validation,
}

/// The bucket of an example id, 0..10000: the first eight bytes of its MD5, little-endian, modulo 10000.
pub fn bucket(example_id: &str) -> u64 {
    let digest = Md5::digest(example_id.as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(head) % BUCKETS
}

/// Whether the game with this id validates.
pub fn is_validation(example_id: &str) -> bool {
    bucket(example_id) < VALIDATION_BUCKETS
}

impl Split {
    /// Whether the game with this id belongs to the part.
    pub fn contains(self, example_id: &str) -> bool {
        match self {
            Split::All => true,
            Split::Train => !is_validation(example_id),
            Split::Validation => is_validation(example_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_the_references() {
        // fixtures data/real_process/bucket_examples.json and bucket_boundaries.json
        assert_eq!(bucket(""), 388);
        assert_eq!(bucket("cwm_random_09999"), 5669);
        assert_eq!(bucket("cwm_8e5b26198af8d90f4f0d3f5a"), 49);
        assert!(Split::Validation.contains("cwm_8e5b26198af8d90f4f0d3f5a"));
        assert!(Split::Train.contains("cwm_bf7e19921fc7ab33a7123133"), "bucket 50 trains");
    }
}
