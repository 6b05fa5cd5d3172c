//! The file of the web configuration.

use std::{collections::BTreeMap, path::Path, time::Instant};

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_saphyr::{RenderOptions, SnippetMode, Spanned, UserMessageFormatter};

use super::{
    active::ActiveConfig,
    files::Files,
    invalid::{Invalid, Text},
    section::Section,
    tls,
};
use crate::http::{
    auth::{self, Users},
    rate::RateLimit,
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tls_server_config: Option<Spanned<Section>>,
    http_server_config: Option<HttpSection>,
    basic_auth_users: Option<BTreeMap<String, Text>>,
    rate_limit: Option<RateSection>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    /// Whether HTTP/2 is allowed. This server does not speak it.
    http2: Option<bool>,
    headers: Option<Headers>,
}

/// The headers that exporter-toolkit allows.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Headers {
    #[serde(rename = "Content-Security-Policy")]
    content_security_policy: Option<Text>,
    #[serde(rename = "X-Frame-Options")]
    x_frame_options: Option<Text>,
    #[serde(rename = "X-Content-Type-Options")]
    x_content_type_options: Option<Text>,
    #[serde(rename = "X-XSS-Protection")]
    x_xss_protection: Option<Text>,
    #[serde(rename = "Strict-Transport-Security")]
    strict_transport_security: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RateSection {
    interval: Option<Text>,
    burst: u32,
}

/// Parses and prepares a file. Paths in it are relative to `directory`.
pub(super) fn parse(bytes: &[u8], directory: &Path, files: &mut Files) -> Result<ActiveConfig, Invalid> {
    let file: File = serde_saphyr::from_slice(bytes).map_err(|error| syntax(&error))?;
    let section = file.tls_server_config;
    let server = section.map(|section| tls::server(section, directory, files)).transpose()?.flatten();
    let (tls, verifies_clients) =
        server.map_or((None, false), |(tls, verifies_clients)| (Some(tls), verifies_clients));
    let headers = file.http_server_config.and_then(|section| section.headers);
    Ok(ActiveConfig {
        tls,
        verifies_clients,
        users: users(file.basic_auth_users.unwrap_or_default())?,
        headers: headers.map(Headers::values).transpose()?.unwrap_or_default(),
        rate_limit: file.rate_limit.map(RateSection::limit).transpose()?.flatten(),
    })
}

fn syntax(error: &serde_saphyr::Error) -> Invalid {
    let mut options = RenderOptions::new(&UserMessageFormatter);
    options.snippets = SnippetMode::Off;
    let reason = error.render_with_options(options);
    let Some(location) = error.location() else { return Invalid { line: 1, column: 1, reason } };
    let (line, column) = (location.line(), location.column());
    let position = format!(" at line {line}, column {column}");
    let reason = reason.strip_suffix(&position).map_or(reason.clone(), str::to_owned);
    Invalid { line, column, reason }
}

fn users(users: BTreeMap<String, Text>) -> Result<Users, Invalid> {
    for (name, hash) in &users {
        if name.contains(':') {
            return Err(Invalid::at(hash, format!("`{name}`: a user name cannot contain a colon")));
        }
        if !auth::is_hash(&hash.value) {
            // The value may be the password itself, so it is not printed.
            let reason =
                format!("`{name}`: this is not a bcrypt hash; make one with `htpasswd -nBC 10 {name}`");
            return Err(Invalid::at(hash, reason));
        }
    }
    Ok(Users::new(users.into_iter().map(|(name, hash)| (name, hash.value))))
}

impl Headers {
    fn values(self) -> Result<Vec<(HeaderName, HeaderValue)>, Invalid> {
        let any: &[&str] = &[];
        let headers = [
            ("content-security-policy", self.content_security_policy, any),
            ("x-frame-options", self.x_frame_options, &["deny", "sameorigin"]),
            ("x-content-type-options", self.x_content_type_options, &["nosniff"]),
            ("x-xss-protection", self.x_xss_protection, any),
            ("strict-transport-security", self.strict_transport_security, any),
        ];
        let mut values = Vec::new();
        for (name, text, allowed) in headers {
            let Some(text) = text.filter(|text| !text.value.is_empty()) else { continue };
            if !allowed.is_empty() && !allowed.contains(&text.value.as_str()) {
                let reason = format!("`{}`: the value must be {}", text.value, allowed.join(" or "));
                return Err(Invalid::at(&text, reason));
            }
            let value = HeaderValue::from_str(&text.value)
                .map_err(|_| Invalid::at(&text, "a header is one line of ASCII text"))?;
            values.push((HeaderName::from_static(name), value));
        }
        Ok(values)
    }
}

impl RateSection {
    fn limit(self) -> Result<Option<RateLimit>, Invalid> {
        let Some(text) = self.interval else { return Ok(None) };
        let interval = humantime::parse_duration(&text.value)
            .map_err(|error| Invalid::at(&text, format!("`{}`: {error}; give it like 100ms", text.value)))?;
        Ok((!interval.is_zero()).then(|| RateLimit::new(interval, self.burst, Instant::now())))
    }
}
