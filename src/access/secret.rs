//! The texts of keys: `tm_<id>_<secret>`, made here, and taken apart when one is shown.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::database::SecretHash;
use crate::domain::KeyId;

const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 2 * SECRET_BYTES;

/// The system had no random numbers to make a key of.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers to make a key of")]
pub struct NoRandomness(#[from] getrandom::Error);

/// A key whole, to be shown once, to whoever asked for it.
#[derive(Clone)]
pub struct KeyText(String);

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// A key that is not stored yet.
#[derive(Debug)]
pub(super) struct Minted {
    pub(super) key_id: KeyId,
    pub(super) secret_hash: SecretHash,
    pub(super) text: KeyText,
}

/// Makes a key from random numbers of the system.
pub(super) fn mint() -> Result<Minted, NoRandomness> {
    let (mut id, mut secret) = ([0; KeyId::CHARS / 2], [0; SECRET_BYTES]);
    getrandom::fill(&mut id)?;
    getrandom::fill(&mut secret)?;
    let (id, secret) = (hex(&id), hex(&secret));
    // Twelve digits of 0-9 and a-f, which is what an id is.
    let key_id = id.parse().map_err(|_| NoRandomness(getrandom::Error::UNEXPECTED))?;
    let text = KeyText(format!("tm_{id}_{secret}"));
    Ok(Minted { key_id, secret_hash: hash(&secret), text })
}

/// A key that somebody shows: its id, and what its secret hashes to.
pub(super) fn read(text: &str) -> Option<(KeyId, SecretHash)> {
    let (id, secret) = text.strip_prefix("tm_")?.split_once('_')?;
    if secret.len() != SECRET_CHARS {
        return None;
    }
    Some((id.parse().ok()?, hash(secret)))
}

fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_made_reads_back_as_what_is_stored_of_it() {
        let minted = mint().expect("random numbers");
        let text = minted.text.to_string();
        assert_eq!(text.len(), 3 + 12 + 1 + 64, "{text}");
        assert_eq!(read(&text), Some((minted.key_id, minted.secret_hash)));
        assert_ne!(mint().expect("random numbers").text.to_string(), text);
        assert!(!format!("{:?}", minted.text).contains(&text), "the secret is in no log");
    }

    #[test]
    fn what_is_no_key_is_not_read_as_one() {
        let whole = format!("tm_0123456789ab_{}", "a".repeat(64));
        for (case, text, is_one) in [
            ("whole", whole.clone(), true),
            ("another prefix", whole.replace("tm_", "sk_"), false),
            ("an id in capitals", whole.replace("ab_", "AB_"), false),
            ("a short secret", whole[..79].to_owned(), false),
            ("a long secret", format!("{whole}a"), false),
            ("nothing", String::new(), false),
        ] {
            assert_eq!(read(&text).is_some(), is_one, "{case}");
        }
    }
}
