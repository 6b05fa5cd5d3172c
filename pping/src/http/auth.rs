//! Who may come in: basic authentication (RFC 7617) against bcrypt hashes.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::HeaderValue;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use ring::{
    hmac::{HMAC_SHA256, Key, Tag, sign},
    rand::SystemRandom,
};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// How many of those who came in are remembered.
const REMEMBERED: usize = 64;

/// Names and the hashes of their passwords.
#[derive(Clone, Default)]
pub(super) struct Users(HashMap<String, Arc<str>>);

impl Users {
    /// From hashes that [`is_hash`] accepts.
    pub(super) fn new(users: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(users.into_iter().map(|(name, hash)| (name, hash.into())).collect())
    }

    /// Whether anybody may come in.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether this is a bcrypt hash.
pub(super) fn is_hash(text: &str) -> bool {
    text.parse::<bcrypt::HashParts>().is_ok()
}

/// Checks passwords, which takes some tenths of a second of a processor each time: one at a time, and not again for
/// those who were right.
pub(super) struct Gate {
    one: Arc<Semaphore>,
    /// Tells what is remembered from what an attacker could work out, should the memory of this process get out.
    key: Option<Key>,
    known: Mutex<VecDeque<Tag>>,
}

impl Default for Gate {
    fn default() -> Self {
        // Without random numbers nothing is remembered.
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new()).ok();
        Self { one: Arc::new(Semaphore::new(1)), key, known: Mutex::default() }
    }
}

impl Gate {
    /// Whether a request with this header may come in.
    pub(super) async fn admits(&self, users: &Users, authorization: Option<&HeaderValue>) -> bool {
        if users.is_empty() {
            return true;
        }
        let Some((name, password)) = authorization.and_then(credentials) else { return false };
        let user = users.0.get(&name);
        // A name that is unknown takes as long as one that is known.
        let Some(hash) = user.or_else(|| users.0.values().next()) else { return false };
        let tag = self.tag(&name, hash, &password);
        if user.is_some() && self.knows(tag.as_ref()) {
            return true;
        }
        let Ok(turn) = Arc::clone(&self.one).acquire_owned().await else { return false };
        let hash = Arc::clone(hash);
        let check = move || {
            let is_right = bcrypt::verify(&password, &hash).unwrap_or(false);
            // Not before it is done, even if the client has gone.
            drop(turn);
            is_right
        };
        let is_right = spawn_blocking(check).await.unwrap_or(false) && user.is_some();
        if let Some(tag) = tag.filter(|_| is_right) {
            self.remember(tag);
        }
        is_right
    }

    /// What is remembered of somebody. When a password is changed the tag is another one.
    fn tag(&self, name: &str, hash: &str, password: &[u8]) -> Option<Tag> {
        // Hashes are of one length and have no NUL in them.
        let text = [name.as_bytes(), hash.as_bytes(), password].join(&0);
        self.key.as_ref().map(|key| sign(key, &text))
    }

    fn knows(&self, tag: Option<&Tag>) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        tag.is_some_and(|tag| known.iter().any(|known| known.as_ref() == tag.as_ref()))
    }

    fn remember(&self, tag: Tag) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(REMEMBERED - 1);
        known.push_front(tag);
    }
}

/// Name and password.
fn credentials(authorization: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = authorization.to_str().ok()?.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    scheme.eq_ignore_ascii_case("basic").then(|| (name, decoded[colon + 1..].to_vec()))
}
