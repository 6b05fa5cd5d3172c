//! Basic authentication (RFC 7617) against bcrypt hashes.

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

use super::workers::Workers;

/// The highest number of passwords that are checked at a time.
pub(super) const AT_ONCE: usize = 1;

/// The number of successful logins that are cached.
const CACHED: usize = 64;

/// The names of users and the hashes of their passwords.
#[derive(Clone, Default)]
pub(super) struct Users {
    hashes: HashMap<String, Arc<str>>,
    /// The hash that takes longest to check; `None` without users.
    dearest: Option<Arc<str>>,
}

impl Users {
    /// The hashes must be valid: see [`is_hash`].
    pub(super) fn new(users: impl IntoIterator<Item = (String, String)>) -> Self {
        let hashes: HashMap<_, Arc<str>> =
            users.into_iter().map(|(name, hash)| (name, hash.into())).collect();
        let dearest = hashes.values().max_by_key(|hash| cost(hash)).cloned();
        Self { hashes, dearest }
    }

    /// Whether no password is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the hash to check the password of this user with. An unknown user takes as long as the slowest one; so names
    /// cannot be guessed by the time of the answer where all hashes have the same cost.
    fn hash(&self, name: &str) -> Option<&Arc<str>> {
        self.hashes.get(name).or(self.dearest.as_ref())
    }
}

/// The cost of a bcrypt hash: the logarithm of the time that it takes to check.
fn cost(hash: &str) -> u32 {
    hash.parse::<bcrypt::HashParts>().map_or(0, |parts| parts.get_cost())
}

/// Whether `text` is a bcrypt hash.
pub(super) fn is_hash(text: &str) -> bool {
    text.parse::<bcrypt::HashParts>().is_ok()
}

/// Checks passwords. A check takes some tenths of a second of CPU time, so one runs at a time, and successful logins
/// are cached.
pub(super) struct Authenticator {
    workers: Workers,
    /// The key of cached tags, which protects passwords should the memory of this process leak. Without it nothing is cached.
    key: Option<Key>,
    cache: Mutex<VecDeque<Tag>>,
}

impl Default for Authenticator {
    fn default() -> Self {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new()).ok();
        Self { workers: Workers::new(AT_ONCE), key, cache: Mutex::default() }
    }
}

impl Authenticator {
    /// Whether a request with this header is allowed.
    pub(super) async fn allows(&self, users: &Users, authorization: Option<&HeaderValue>) -> bool {
        if users.is_empty() {
            return true;
        }
        let Some((name, password)) = authorization.and_then(credentials) else { return false };
        let is_known = users.hashes.contains_key(&name);
        let Some(hash) = users.hash(&name) else { return false };
        let tag = self.tag(&name, hash, &password);
        if is_known && self.is_cached(tag.as_ref()) {
            return true;
        }
        let hash = Arc::clone(hash);
        let check = move || bcrypt::verify(&password, &hash).unwrap_or(false);
        let is_right = self.workers.run(check).await.unwrap_or(false) && is_known;
        if let Some(tag) = tag.filter(|_| is_right) {
            self.cache(tag);
        }
        is_right
    }

    /// Returns the tag of a login. It changes with the hash of the password.
    fn tag(&self, name: &str, hash: &str, password: &[u8]) -> Option<Tag> {
        // Hashes have a fixed length and no NUL.
        let text = [name.as_bytes(), hash.as_bytes(), password].join(&0);
        self.key.as_ref().map(|key| sign(key, &text))
    }

    fn is_cached(&self, tag: Option<&Tag>) -> bool {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        tag.is_some_and(|tag| cache.iter().any(|cached| cached.as_ref() == tag.as_ref()))
    }

    fn cache(&self, tag: Tag) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.truncate(CACHED - 1);
        cache.push_front(tag);
    }
}

/// Returns the name and the password in the header.
fn credentials(authorization: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = authorization.to_str().ok()?.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    scheme.eq_ignore_ascii_case("basic").then(|| (name, decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_user_takes_as_long_as_the_slowest_known_one() {
        let hash = |cost| bcrypt::hash("secret", cost).unwrap();
        let names = (0..20).map(|number| (format!("user-{number}"), hash(4)));
        let users = Users::new(names.chain([("slow".to_owned(), hash(6))]));
        assert_eq!(users.hash("nobody").map(|hash| cost(hash)), Some(6));
        assert_eq!(users.hash("user-3").map(|hash| cost(hash)), Some(4));
        assert!(Users::default().hash("nobody").is_none());
    }
}
