//! Leases, and what they are named after.

use std::sync::Arc;

use clap::ValueEnum;
use ipnet::IpNet;

/// What a lease is named after. If it has none, it is another of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabelBy {
    /// The host name that the client sent or the server gave it
    Hostname,
    /// The client identifier, or the DUID
    ClientId,
    /// The hardware address
    Mac,
}

/// Who has a lease, as far as the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) hostname: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) mac: Option<String>,
}

impl Holder {
    /// The label of the lease.
    pub(super) fn label(self, by: LabelBy) -> Option<Arc<str>> {
        let Self { hostname, client_id, mac } = self;
        let label = match by {
            LabelBy::Hostname => hostname.or(mac).or(client_id),
            LabelBy::ClientId => client_id.or(mac).or(hostname),
            LabelBy::Mac => mac.or(client_id).or(hostname),
        };
        label.map(Into::into)
    }
}

/// A line of a lease file, or what stands for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A client has a lease.
    Leased {
        prefix: IpNet,
        client: Holder,
        /// When it ends, in seconds since 1970; `None` is never.
        expires: Option<u64>,
    },
    /// Nobody has a lease.
    Free(IpNet),
    /// The line cannot be read, for this reason.
    Unreadable(String),
}

/// What a file has, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing that says what it is.
    #[default]
    Unknown,
    /// Leases, in the format that the user named.
    Leases,
    /// Something else.
    Foreign,
}

/// The text of a field, unless it stands for none.
pub(super) fn field(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "*" && !text.contains(char::is_control)).then(|| text.to_owned())
}

/// A lease with a host name, a client identifier and a hardware address, of which empty ones are absent.
#[cfg(test)]
pub(super) fn leased(prefix: &str, names: [&str; 3], expires: Option<u64>) -> Event {
    let [hostname, client_id, mac] = names.map(|name| Some(name.to_owned()).filter(|name| !name.is_empty()));
    Event::Leased { prefix: prefix.parse().unwrap(), client: Holder { hostname, client_id, mac }, expires }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_without_the_asked_name_has_another() {
        let text = |text: &str| Some(text.to_owned());
        let all = Holder { hostname: text("tv"), client_id: text("01:02"), mac: text("02:00") };
        let label = |client: &Holder, by| client.clone().label(by);
        assert_eq!(label(&all, LabelBy::Hostname).as_deref(), Some("tv"));
        assert_eq!(label(&all, LabelBy::ClientId).as_deref(), Some("01:02"));
        assert_eq!(label(&all, LabelBy::Mac).as_deref(), Some("02:00"));
        let without = Holder { hostname: None, ..all };
        assert_eq!(label(&without, LabelBy::Hostname).as_deref(), Some("02:00"));
        assert_eq!(label(&Holder::default(), LabelBy::Mac), None);
    }
}
