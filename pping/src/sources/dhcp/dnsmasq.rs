//! The lease file of dnsmasq: a line for each lease that there is, written again whenever one changes.

use std::net::IpAddr;

use ipnet::IpNet;

use super::lease::{Content, Event, Holder, field};

/// Times below this are no seconds since 1970: some builds for devices without a clock write lengths of leases.
const FIRST_TIME: u64 = 1_000_000_000;

/// Whether a file has all that was written to it. Otherwise its last line has no end yet.
pub(super) fn is_whole(text: &str) -> bool {
    text.is_empty() || text.ends_with('\n')
}

/// What a file has. Without leases it is empty, and a line that can be read is one of dnsmasq.
pub(super) fn content(text: &str) -> Content {
    let mut content = if text.is_empty() { Content::Leases } else { Content::Unknown };
    if text.lines().any(|line| line.starts_with("duid ")) {
        content = Content::Leases;
    }
    read(text, &mut |event| match event {
        Event::Unreadable(_) if content == Content::Unknown => content = Content::Foreign,
        Event::Unreadable(_) => {}
        Event::Leased { .. } | Event::Free(_) => content = Content::Leases,
    });
    content
}

/// Reads the lines of the file, but not a last one that has no end yet.
pub(super) fn read(text: &str, take: &mut dyn FnMut(Event)) {
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    for line in text[..end].lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            // The identifier of the server. Leases for IPv6 follow.
            ["duid", _] => {}
            [expires, hardware, address, hostname, ref rest @ ..] if rest.len() <= 1 => {
                let (Ok(address), Ok(expires)) = (address.parse::<IpAddr>(), expires.parse::<u64>()) else {
                    take(Event::Unreadable(line.to_owned()));
                    continue;
                };
                // For IPv6 it is the number of the association.
                let mac = field(hardware).filter(|_| address.is_ipv4());
                let client_id = rest.first().and_then(|id| field(id));
                take(Event::Leased {
                    prefix: IpNet::from(address),
                    client: Holder { hostname: field(hostname), client_id, mac },
                    // The file lists no lease that has ended, so these times only matter once dnsmasq does not run.
                    expires: Some(expires).filter(|expires| *expires >= FIRST_TIME),
                });
            }
            _ => take(Event::Unreadable(line.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        read(text, &mut |event| events.push(event));
        events
    }

    fn leased(prefix: &str, names: [Option<&str>; 3], expires: Option<u64>) -> Event {
        let [hostname, client_id, mac] = names.map(|name| name.map(str::to_owned));
        Event::Leased {
            prefix: prefix.parse().unwrap(),
            client: Holder { hostname, client_id, mac },
            expires,
        }
    }

    #[test]
    fn leases_of_both_families_are_read() {
        let text = "1795600000 02:00:5e:10:00:01 192.168.7.20 kitchen-radio 01:02:00:5e:10:00:01\n\
                    0 06-02:00:5e:10:00:02 192.168.7.21 * *\n\
                    duid 00:01:00:01:2f:00:00:01:02:00:5e:10:00:fe\n\
                    1795600100 6291457 2001:db8:7::21 laptop 00:03:00:01:02:00:5e:10:00:03\n\
                    3600 T77 2001:db8:7::22 * 00:04:aa\n";
        let mac = Some("02:00:5e:10:00:01");
        let id = Some("01:02:00:5e:10:00:01");
        let expected = [
            leased("192.168.7.20/32", [Some("kitchen-radio"), id, mac], Some(1_795_600_000)),
            leased("192.168.7.21/32", [None, None, Some("06-02:00:5e:10:00:02")], None),
            leased(
                "2001:db8:7::21/128",
                [Some("laptop"), Some("00:03:00:01:02:00:5e:10:00:03"), None],
                Some(1_795_600_100),
            ),
            leased("2001:db8:7::22/128", [None, Some("00:04:aa"), None], None),
        ];
        assert_eq!(events(text), expected);
    }

    #[test]
    fn a_file_is_known_by_a_line_that_can_be_read() {
        let good = "0 02:00:5e:10:00:02 192.168.7.21 * *\n";
        for leases in ["", good, &format!("x\n{good}"), "duid 00:01:00:01:2f:00\n"] {
            assert_eq!(content(leases), Content::Leases, "{leases}");
        }
        for foreign in
            ["x\n", "address,hwaddr,client_id\n10.0.0.1,,\n0 02:00", "lease 10.0.0.1 {\n  ends never;\n}\n"]
        {
            assert_eq!(content(foreign), Content::Foreign, "{foreign}");
        }
        // Its first line has no end yet, or it has none.
        assert_eq!(content("0 02:00:5e:10"), Content::Unknown);
        assert_eq!(content("\n"), Content::Unknown);
    }

    #[test]
    fn other_lines_are_unreadable() {
        for line in
            ["x", "1 2 3", "soon 02:00 192.0.2.1 a *", "5 02:00 192.0.2.300 a *", "5 02:00 192.0.2.1 a b c"]
        {
            assert_eq!(events(&format!("{line}\n")), [Event::Unreadable(line.to_owned())]);
        }
    }
}
