//! Example ids: keyed hashes of a game's source, so that a dataset names no player and no page (paper, section B.1).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::chess::MoveToken;

/// The key used where none is given: public, so that everybody derives the same ids and with them the same split.
pub const PUBLIC_KEY: &str = "chess-world-model/public-id-key/1";

/// Where an id key came from; recorded in a dataset, the key itself never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// [`PUBLIC_KEY`].
    Public,
    /// A key that the user gave.
    Private,
    /// No key: ids are those of the input.
    None,
}

/// Derives example ids.
#[derive(Clone)]
pub struct IdKey {
    mac: Hmac<Sha256>,
    kind: KeyKind,
}

impl Default for IdKey {
    fn default() -> Self {
        Self::with_kind(PUBLIC_KEY.as_bytes(), KeyKind::Public)
    }
}

impl IdKey {
    /// A private key; an empty one counts as absent, hence as the public key.
    pub fn new(key: &[u8]) -> Self {
        if key.is_empty() { Self::default() } else { Self::with_kind(key, KeyKind::Private) }
    }

    fn with_kind(key: &[u8], kind: KeyKind) -> Self {
        // HMAC takes keys of every length, so the fallback is never reached.
        let mac = Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
        IdKey { mac, kind }
    }

    /// Whether the key is public or private.
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The id of a game from its Site: `cwm_` and 24 hexadecimal digits of HMAC-SHA256, as the reference has it.
    ///
    /// Returns `None` for a Site that identifies nothing (blank).
    pub fn of_site(&self, site: &str) -> Option<String> {
        let site = strip(site);
        (!site.is_empty()).then(|| self.id(&[site.as_bytes()]))
    }

    /// The id of a game from a header value, if it is a web address: anything else names a place or nothing at all.
    pub fn of_address(&self, value: &str) -> Option<String> {
        if value.contains("://") { self.of_site(value) } else { None }
    }

    /// The id of a game without an address: a hash of its moves, which no address collides with.
    pub fn of_moves(&self, moves: &[MoveToken]) -> String {
        let mut bytes = Vec::with_capacity(2 * moves.len());
        for token in moves {
            bytes.extend_from_slice(&token.id().to_le_bytes());
        }
        // A Site is text without control characters in the middle of a tag; NUL keeps the two apart.
        self.id(&[b"\0moves\0", &bytes])
    }

    fn id(&self, parts: &[&[u8]]) -> String {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut mac = self.mac.clone();
        for part in parts {
            mac.update(part);
        }
        let digest = mac.finalize().into_bytes();
        let mut id = String::with_capacity(28);
        id.push_str("cwm_");
        for byte in &digest[..12] {
            id.push(HEX[usize::from(byte >> 4)] as char);
            id.push(HEX[usize::from(byte & 15)] as char);
        }
        id
    }
}

impl std::fmt::Debug for IdKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not end up in a log.
        write!(f, "IdKey({:?})", self.kind)
    }
}

/// Removes what Python's `str.strip` removes: Unicode blanks and the four ASCII separators.
fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}

/// Eight bytes that stand for an id: ten million ids then collide by chance once in 370,000 runs.
pub fn fingerprint(id: &str) -> u64 {
    let digest = Sha256::digest(id.as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_references() {
        // fixtures data/real_process/example_id_examples.json
        for (key, site, id) in [
            ("test-key", "https://lichess.org/aaaaaa01", "cwm_4cd3f09aa9ce967944358c1b"),
            ("test-key", "?", "cwm_f5192bd4aac22e3c7ba33c2a"),
            ("k", "x", "cwm_c38edc8815c8489f64738978"),
            ("clé", "https://lichess.org/ø", "cwm_745c3be55824b1ae8bf8a456"),
            ("k", " \u{a0}x\x1f\n", "cwm_c38edc8815c8489f64738978"),
        ] {
            assert_eq!(IdKey::new(key.as_bytes()).of_site(site).as_deref(), Some(id));
        }
    }

    #[test]
    fn a_blank_site_has_no_id_and_moves_have_their_own() {
        let key = IdKey::default();
        assert_eq!(key.of_site("  \t"), None);
        let e4 = MoveToken::new(3980).unwrap();
        assert_ne!(key.of_moves(&[e4]), key.of_moves(&[e4, e4]));
        assert_eq!(key.of_moves(&[]).len(), 28);
        assert_eq!(IdKey::new(b"").kind(), KeyKind::Public);
        assert_eq!(format!("{:?}", IdKey::new(b"secret")), "IdKey(Private)");
    }
}
