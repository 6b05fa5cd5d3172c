//! The lease files of Kea (`memfile`): CSV, to which a line is added for each change.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use super::lease::{Content, Event, Holder, field};

/// How Kea writes a comma in a field.
const COMMA: &str = "&#x2c";

/// A lifetime without an end.
const INFINITE: u64 = u32::MAX as u64;

/// States of leases that somebody has: one that was assigned, and an address that a client registered.
const ACTIVE: [&str; 2] = ["0", "4"];

/// The type of a lease of a whole prefix.
const DELEGATED: &str = "2";

/// Reads a file from its beginning.
#[derive(Debug, Default)]
pub(super) struct Kea {
    /// The columns that matter, by their places in the header.
    columns: Option<Columns>,
    content: Content,
}

#[derive(Debug)]
struct Columns {
    address: usize,
    expire: usize,
    lifetime: Option<usize>,
    kind: Option<usize>,
    prefix_len: Option<usize>,
    hostname: Option<usize>,
    client_id: Option<usize>,
    mac: Option<usize>,
    state: Option<usize>,
}

impl Columns {
    fn of(header: &str) -> Option<Self> {
        let place = |name| header.split(',').position(|column| column.trim() == name);
        Some(Self {
            address: place("address")?,
            expire: place("expire")?,
            lifetime: place("valid_lifetime"),
            kind: place("lease_type"),
            prefix_len: place("prefix_len"),
            hostname: place("hostname"),
            client_id: place("client_id").or_else(|| place("duid")),
            mac: place("hwaddr"),
            state: place("state"),
        })
    }
}

impl Kea {
    /// What the file has. Kea begins each of its files with a header.
    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// Reads the whole lines at the beginning of a text, and returns their length. A file of another kind has no events.
    pub(super) fn read(&mut self, text: &str, take: &mut dyn FnMut(Event)) -> usize {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for line in text[..whole].lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            if line.starts_with("address,") {
                self.columns = Columns::of(line);
            }
            if self.content == Content::Unknown {
                self.content = if self.columns.is_some() { Content::Leases } else { Content::Foreign };
            }
            if self.content == Content::Foreign || line.starts_with("address,") {
                continue;
            }
            let event = self.columns.as_ref().and_then(|columns| event(line, columns));
            take(event.unwrap_or_else(|| Event::Unreadable(line.to_owned())));
        }
        whole
    }
}

fn event(line: &str, columns: &Columns) -> Option<Event> {
    let fields: Vec<&str> = line.split(',').collect();
    let get = |column: Option<usize>| fields.get(column?).copied();
    let address: IpAddr = get(Some(columns.address))?.parse().ok()?;
    let prefix = match (address, get(columns.kind)) {
        (IpAddr::V6(address), Some(DELEGATED)) => delegated(address, get(columns.prefix_len)?)?.into(),
        _ => IpNet::from(address),
    };
    let expires: u64 = get(Some(columns.expire))?.parse().ok()?;
    let lifetime: Option<u64> = get(columns.lifetime).map(str::parse).transpose().ok()?;
    let is_active = get(columns.state).is_none_or(|state| ACTIVE.contains(&state));
    // A lease that was deleted has no lifetime.
    if !is_active || lifetime == Some(0) {
        return Some(Event::Free(prefix));
    }
    let text = |column| get(column).and_then(|text| field(&text.replace(COMMA, ",")));
    let client = Holder {
        hostname: text(columns.hostname),
        client_id: text(columns.client_id),
        mac: text(columns.mac),
    };
    Some(Event::Leased { prefix, client, expires: (lifetime != Some(INFINITE)).then_some(expires) })
}

fn delegated(address: Ipv6Addr, length: &str) -> Option<Ipv6Net> {
    Some(Ipv6Net::new(address, length.parse().ok()?).ok()?.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::dhcp::lease::leased;

    const V4: &str = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,\
                      user_context,pool_id\n";
    const V6: &str = "address,duid,valid_lifetime,expire,subnet_id,pref_lifetime,lease_type,iaid,prefix_len,fqdn_fwd,\
                      fqdn_rev,hostname,hwaddr,state,user_context,hwtype,hwaddr_source,pool_id\n";

    fn events(text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        assert_eq!(Kea::default().read(text, &mut |event| events.push(event)), text.len());
        events
    }

    #[test]
    fn leases_for_ipv4_are_read() {
        let text = format!(
            "{V4}10.20.0.5,02:00:5e:00:00:05,01:02:00:5e:00:00:05,3600,1795600000,7,0,0,cpe-5&#x2c north,0,,0\n\
             10.20.0.6,02:00:5e:00:00:06,,4294967295,6090567295,7,0,0,,0,,0\n\
             10.20.0.5,02:00:5e:00:00:05,,0,1795600000,7,0,0,,0,,0\n\
             10.20.0.7,02:00:5e:00:00:07,,3600,1795600000,7,0,0,,2,,0\n"
        );
        let expected = [
            leased(
                "10.20.0.5/32",
                ["cpe-5, north", "01:02:00:5e:00:00:05", "02:00:5e:00:00:05"],
                Some(1_795_600_000),
            ),
            leased("10.20.0.6/32", ["", "", "02:00:5e:00:00:06"], None),
            Event::Free("10.20.0.5/32".parse().unwrap()),
            Event::Free("10.20.0.7/32".parse().unwrap()),
        ];
        assert_eq!(events(&text), expected);
    }

    #[test]
    fn addresses_and_prefixes_for_ipv6_are_read() {
        let text = format!(
            "{V6}2001:db8:0:7::10,00:03:00:01:02:00:5e:00:00:05,7200,1795600000,1,3600,0,99,128,0,0,cpe-5,,0,,,,0\n\
             2001:db8:aa00::,00:03:00:01:02:00:5e:00:00:05,7200,1795600000,1,3600,2,99,56,0,0,,,0,,,,0\n"
        );
        let duid = "00:03:00:01:02:00:5e:00:00:05";
        let expected = [
            leased("2001:db8:0:7::10/128", ["cpe-5", duid, ""], Some(1_795_600_000)),
            leased("2001:db8:aa00::/56", ["", duid, ""], Some(1_795_600_000)),
        ];
        assert_eq!(events(&text), expected);
    }

    #[test]
    fn half_a_line_waits_for_the_rest() {
        let mut kea = Kea::default();
        let mut read = |text: &str| {
            let mut events = Vec::new();
            (kea.read(text, &mut |event| events.push(event)), events)
        };
        let line = "10.0.0.1,,,60,1795600000,1,0,0,a,0,,0";
        assert_eq!(read(&format!("{V4}{line}")), (V4.len(), Vec::new()));
        let (length, events) = read(&format!("{line}\n10."));
        assert_eq!(
            (length, events),
            (line.len() + 1, vec![leased("10.0.0.1/32", ["a", "", ""], Some(1_795_600_000))])
        );
    }

    #[test]
    fn other_lines_are_unreadable() {
        for line in
            ["10.0.0.1,,,60,1795600000,1,0,0,a,0,", "x,,,60,1,1,0,0,a,0,", "10.0.0.1", "10.0.0.1,,,x,1,,,"]
        {
            let is_good = line.contains("1795600000");
            let expected = Event::Unreadable(line.to_owned());
            assert_eq!(events(&format!("{V4}{line}\n"))[0] == expected, !is_good, "{line}");
            // Without a header nothing is known.
            assert_eq!(events(&format!("{line}\n")), []);
        }
    }

    #[test]
    fn a_file_is_known_by_its_header() {
        let content = |text: &str| {
            let mut kea = Kea::default();
            kea.read(text, &mut |_| {});
            kea.content()
        };
        assert_eq!(content(""), Content::Unknown);
        assert_eq!(content(V4.trim_end()), Content::Unknown);
        assert_eq!(content(V4), Content::Leases);
        assert_eq!(content(&format!("{V6}x\n")), Content::Leases);
        for foreign in ["address,group\n", "1795600000 02:00 192.0.2.1 a *\n", "# a comment\n", "x\n"] {
            assert_eq!(
                content(&format!("{foreign}{V4}10.0.0.1,,,60,1795600000,1,0,0,a,0,\n")),
                Content::Foreign
            );
        }
    }
}
