//! What a NAS reports of a session, from the attributes of an accounting request.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use clap::ValueEnum;
use ipnet::{IpNet, Ipv4Net, Ipv6Net, ipv4_mask_to_prefix};

use super::packet::{Attribute, Malformed, Packet};
use crate::sources::text::readable;

/// What a session is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabelBy {
    /// User-Name
    UserName,
    /// Calling-Station-Id: most often the address of the customer's device
    CallingStationId,
    /// Class: what the authentication server chose
    Class,
}

/// The types of attributes (RFC 2865, 2866, 2869, 3162, 4818 and 6911).
mod attribute {
    pub(super) const USER_NAME: u8 = 1;
    pub(super) const NAS_IP_ADDRESS: u8 = 4;
    pub(super) const FRAMED_IP_ADDRESS: u8 = 8;
    pub(super) const FRAMED_ROUTE: u8 = 22;
    pub(super) const CLASS: u8 = 25;
    pub(super) const CALLING_STATION_ID: u8 = 31;
    pub(super) const NAS_IDENTIFIER: u8 = 32;
    pub(super) const STATUS_TYPE: u8 = 40;
    pub(super) const DELAY_TIME: u8 = 41;
    pub(super) const SESSION_ID: u8 = 44;
    pub(super) const SESSION_TIME: u8 = 46;
    pub(super) const INTERIM_INTERVAL: u8 = 85;
    pub(super) const NAS_IPV6_ADDRESS: u8 = 95;
    pub(super) const FRAMED_IPV6_PREFIX: u8 = 97;
    pub(super) const FRAMED_IPV6_ROUTE: u8 = 99;
    pub(super) const DELEGATED_IPV6_PREFIX: u8 = 123;
    pub(super) const FRAMED_IPV6_ADDRESS: u8 = 168;
}

/// What happened (Acct-Status-Type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// A session began.
    Start,
    /// It goes on.
    Interim,
    /// It ended.
    Stop,
    /// The NAS starts or stops (Accounting-On and Accounting-Off): it has no sessions.
    NoSessions,
    /// Something that says nothing of addresses.
    Other,
}

/// What gives a session a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Address,
    FramedPrefix,
    DelegatedPrefix,
    Ipv6Address,
    /// What is routed to the subscriber, behind its own address.
    Route,
    Ipv6Route,
}

/// A NAS. Names are what it says itself, so those of clients with different secrets are different.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Nas {
    /// The entry of the file of secrets that its client is in; `None` is that of all other clients.
    pub(super) entry: Option<IpNet>,
    /// Its name, or else its address.
    pub(super) name: Arc<str>,
}

/// What a NAS reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) status: Status,
    pub(super) nas: Nas,
    /// Acct-Session-Id; empty if the report is not of a session.
    pub(super) session: Arc<[u8]>,
    /// The name of the session.
    pub(super) label: Option<Arc<str>>,
    pub(super) prefixes: Vec<(Kind, IpNet)>,
    /// How long the NAS has tried to report this.
    pub(super) delay: Duration,
    /// How long the session had lasted then.
    pub(super) age: Duration,
    /// How often the NAS says that it reports.
    pub(super) interval: Option<Duration>,
    /// A route whose destination cannot be read. Its text is as the NAS likes.
    pub(super) unread_route: Option<String>,
}

impl Report {
    /// Reads a report that came from an address, which has its secret from an entry of the file.
    ///
    /// # Errors
    /// If an attribute has a wrong length, or one is missing that every such report has.
    pub(super) fn read(
        packet: &Packet<'_>,
        label_by: LabelBy,
        from: IpAddr,
        entry: Option<IpNet>,
    ) -> Result<Self, Malformed> {
        let mut report = Self {
            status: Status::Other,
            nas: Nas { entry, name: Arc::default() },
            session: Arc::default(),
            label: None,
            prefixes: Vec::new(),
            delay: Duration::ZERO,
            age: Duration::ZERO,
            interval: None,
            unread_route: None,
        };
        let (mut status, mut nas_address, mut identifier) = (None, None, None);
        for attribute in packet.attributes() {
            match attribute.kind {
                attribute::STATUS_TYPE => status = Some(attribute.number()?),
                attribute::NAS_IP_ADDRESS => nas_address = Some(attribute.ipv4()?.into()),
                attribute::NAS_IPV6_ADDRESS => nas_address = Some(IpAddr::from(attribute.ipv6()?)),
                attribute::NAS_IDENTIFIER => identifier = readable(attribute.value),
                attribute::SESSION_ID => report.session = attribute.value.into(),
                attribute::DELAY_TIME => report.delay = attribute.seconds()?,
                attribute::SESSION_TIME => report.age = attribute.seconds()?,
                attribute::INTERIM_INTERVAL => {
                    report.interval = Some(attribute.seconds()?).filter(|interval| !interval.is_zero());
                }
                kind if kind == label_by.attribute() && report.label.is_none() => {
                    report.label = readable(attribute.value).map(Into::into);
                }
                attribute::FRAMED_ROUTE | attribute::FRAMED_IPV6_ROUTE => match attribute.route() {
                    Some(route) => report.add(route),
                    None => report.unread_route = Some(readable(attribute.value).unwrap_or_default()),
                },
                _ => attribute.prefix()?.into_iter().for_each(|prefix| report.add(prefix)),
            }
        }
        report.status = status_of(status.ok_or_else(|| Malformed("it has no Acct-Status-Type".to_owned()))?);
        let nas = identifier.unwrap_or_else(|| nas_address.unwrap_or(from).to_canonical().to_string());
        report.nas.name = nas.into();
        let is_of_session = !matches!(report.status, Status::NoSessions | Status::Other);
        if is_of_session && report.session.is_empty() {
            return Err(Malformed("it has no Acct-Session-Id".to_owned()));
        }
        Ok(report)
    }

    /// Adds a prefix, unless it is known already or is nobody's.
    fn add(&mut self, (kind, prefix): (Kind, IpNet)) {
        if is_assigned(&prefix) && !self.prefixes.contains(&(kind, prefix)) {
            self.prefixes.push((kind, prefix));
        }
    }
}

fn status_of(number: u32) -> Status {
    match number {
        1 => Status::Start,
        2 => Status::Stop,
        3 => Status::Interim,
        7 | 8 => Status::NoSessions,
        // Of tunnels, and failures.
        _ => Status::Other,
    }
}

impl LabelBy {
    fn attribute(self) -> u8 {
        match self {
            Self::UserName => attribute::USER_NAME,
            Self::CallingStationId => attribute::CALLING_STATION_ID,
            Self::Class => attribute::CLASS,
        }
    }
}

impl Attribute<'_> {
    fn bytes<const N: usize>(&self) -> Result<[u8; N], Malformed> {
        self.value.try_into().map_err(|_| {
            Malformed(format!("its attribute {} has {} bytes, not {N}", self.kind, self.value.len()))
        })
    }

    fn number(&self) -> Result<u32, Malformed> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn seconds(&self) -> Result<Duration, Malformed> {
        Ok(Duration::from_secs(self.number()?.into()))
    }

    fn ipv4(&self) -> Result<Ipv4Addr, Malformed> {
        self.bytes::<4>().map(Ipv4Addr::from)
    }

    fn ipv6(&self) -> Result<Ipv6Addr, Malformed> {
        self.bytes::<16>().map(Ipv6Addr::from)
    }

    /// The prefix that this attribute gives a session; `None` if it gives none.
    fn prefix(&self) -> Result<Option<(Kind, IpNet)>, Malformed> {
        Ok(Some(match self.kind {
            attribute::FRAMED_IP_ADDRESS => (Kind::Address, IpNet::from(IpAddr::from(self.ipv4()?))),
            attribute::FRAMED_IPV6_ADDRESS => (Kind::Ipv6Address, IpNet::from(IpAddr::from(self.ipv6()?))),
            attribute::FRAMED_IPV6_PREFIX => (Kind::FramedPrefix, self.ipv6_prefix()?.into()),
            attribute::DELEGATED_IPV6_PREFIX => (Kind::DelegatedPrefix, self.ipv6_prefix()?.into()),
            _ => return Ok(None),
        }))
    }

    /// The destination of a route: the first word of its text. `None` if it has none.
    ///
    /// Without a length, an IPv4 prefix is that of its class (RFC 2865, section 5.22); some NAS write a mask after it. An
    /// IPv6 prefix has its length (RFC 3162, section 2.5).
    fn route(&self) -> Option<(Kind, IpNet)> {
        let text = std::str::from_utf8(self.value).ok()?;
        let mut words = text.split(|letter: char| letter.is_ascii_whitespace() || letter == '\0');
        let destination = words.next()?;
        match destination.parse::<IpNet>() {
            Ok(IpNet::V4(prefix)) => Some((Kind::Route, prefix.trunc().into())),
            Ok(IpNet::V6(prefix)) => Some((Kind::Ipv6Route, prefix.trunc().into())),
            Err(_) => {
                let address: Ipv4Addr = destination.parse().ok()?;
                let mask = words.find(|word| !word.is_empty()).and_then(|word| word.parse().ok());
                let prefix =
                    Ipv4Net::new(address, mask.and_then(mask_length).or(class_length(address))?).ok()?;
                // Bits beyond its length say that it was meant otherwise.
                (prefix.addr() == prefix.network()).then(|| (Kind::Route, prefix.into()))
            }
        }
    }

    /// A reserved byte, the length, and as many bytes of the prefix as it has (RFC 3162, section 2.3).
    fn ipv6_prefix(&self) -> Result<Ipv6Net, Malformed> {
        let wrong =
            || Malformed(format!("its attribute {} is no IPv6 prefix: {:02x?}", self.kind, self.value));
        let &[_, length, ref bits @ ..] = self.value else { return Err(wrong()) };
        let mut address = [0; 16];
        address.get_mut(..bits.len()).ok_or_else(wrong)?.copy_from_slice(bits);
        let net = Ipv6Net::new(Ipv6Addr::from(address), length).map_err(|_| wrong())?;
        if bits.is_empty() && length > 0 {
            return Err(wrong());
        }
        Ok(net.trunc())
    }
}

/// The length of a mask. Gateways never begin with 255.
fn mask_length(mask: Ipv4Addr) -> Option<u8> {
    ipv4_mask_to_prefix(mask).ok().filter(|length| *length >= 8)
}

/// The length of the network of an address by its class.
fn class_length(address: Ipv4Addr) -> Option<u8> {
    match address.octets()[0] {
        0..128 => Some(8),
        128..192 => Some(16),
        192..224 => Some(24),
        _ => None,
    }
}

/// Whether a prefix belongs to a session. Some addresses say that the NAS or the user chooses another one (RFC 2865, section
/// 5.8), and a prefix of length 0 would be everybody's.
fn is_assigned(prefix: &IpNet) -> bool {
    let address = prefix.addr();
    let chosen_later = [Ipv4Addr::BROADCAST, Ipv4Addr::new(255, 255, 255, 254)].map(IpAddr::from);
    prefix.prefix_len() > 0
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !chosen_later.contains(&address)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::packet::request, *};

    const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn read_by(label_by: LabelBy, attributes: &[(u8, &[u8])]) -> Result<Report, Malformed> {
        let bytes = request(1, attributes, b"secret");
        Report::read(&Packet::parse(&bytes).unwrap(), label_by, FROM, None)
    }

    fn read(attributes: &[(u8, &[u8])]) -> Result<Report, Malformed> {
        read_by(LabelBy::UserName, attributes)
    }

    const START: (u8, &[u8]) = (40, &[0, 0, 0, 1]);
    const SESSION: (u8, &[u8]) = (44, b"8f01");

    #[test]
    fn a_start_has_name_session_and_prefixes() {
        let mut delegated = vec![0, 56, 0x20, 0x01, 0x0d, 0xb8, 0, 1, 0xab];
        let mut framed = vec![0, 64];
        framed.extend("2001:db8:2:3::".parse::<Ipv6Addr>().unwrap().octets());
        let address = "2001:db8:2:3::7".parse::<Ipv6Addr>().unwrap().octets();
        let attributes: [(u8, &[u8]); 10] = [
            START,
            SESSION,
            (1, b"alice@example.net"),
            (8, &[100, 64, 0, 9]),
            (123, &delegated),
            (97, &framed),
            (168, &address),
            (32, b"bng-north"),
            (41, &[0, 0, 0, 5]),
            (85, &[0, 0, 1, 44]),
        ];
        let report = read(&attributes).unwrap();
        let prefixes = ["100.64.0.9/32", "2001:db8:1:ab00::/56", "2001:db8:2:3::/64", "2001:db8:2:3::7/128"];
        let expected: Vec<IpNet> = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
        assert_eq!(report.prefixes.iter().map(|(_, prefix)| *prefix).collect::<Vec<_>>(), expected);
        assert_eq!(report.status, Status::Start);
        assert_eq!(report.label.as_deref(), Some("alice@example.net"));
        assert_eq!((&*report.nas.name, &*report.session), ("bng-north", &b"8f01"[..]));
        assert_eq!((report.delay, report.interval), (Duration::from_secs(5), Some(Duration::from_mins(5))));
        // Bits beyond the length of the prefix do not count.
        delegated[8] = 0xaf;
        delegated[1] = 60;
        let report = read(&[START, SESSION, (123, &delegated)]).unwrap();
        assert_eq!(report.prefixes[0].1, "2001:db8:1:af00::/60".parse::<IpNet>().unwrap());
    }

    #[test]
    fn the_label_is_what_was_asked_for() {
        let attributes: [(u8, &[u8]); 6] =
            [START, SESSION, (1, b"alice"), (25, b"gold-1207"), (25, b"second"), (31, b"02-00-00-00-00-01")];
        let label = |by| read_by(by, &attributes).unwrap().label;
        assert_eq!(label(LabelBy::UserName).as_deref(), Some("alice"));
        assert_eq!(label(LabelBy::Class).as_deref(), Some("gold-1207"));
        assert_eq!(label(LabelBy::CallingStationId).as_deref(), Some("02-00-00-00-00-01"));
        assert_eq!(read(&[START, SESSION]).unwrap().label, None);
    }

    #[test]
    fn a_nas_without_a_name_has_its_address() {
        let nas = |attributes: &[(u8, &[u8])]| {
            let attributes = [&[START, SESSION], attributes].concat();
            read(&attributes).unwrap().nas.name.to_string()
        };
        assert_eq!(nas(&[]), "192.0.2.1");
        assert_eq!(nas(&[(4, &[10, 0, 0, 1])]), "10.0.0.1");
        assert_eq!(nas(&[(4, &[10, 0, 0, 1]), (32, b"pop-3")]), "pop-3");
    }

    #[test]
    fn addresses_that_are_chosen_later_are_left_out() {
        for address in [[255, 255, 255, 255], [255, 255, 255, 254], [0; 4], [127, 0, 0, 1], [224, 0, 0, 1]] {
            assert_eq!(read(&[START, SESSION, (8, &address)]).unwrap().prefixes, []);
        }
        assert_eq!(read(&[START, SESSION, (97, &[0, 0])]).unwrap().prefixes, []);
    }

    #[test]
    fn what_is_routed_to_a_subscriber_is_its() {
        let route = |kind: u8, text: &str| {
            let report = read(&[START, SESSION, (kind, text.as_bytes())]).unwrap();
            let prefixes: Vec<_> = report.prefixes.iter().map(|(_, prefix)| prefix.to_string()).collect();
            (prefixes.join(" "), report.unread_route)
        };
        for (kind, text, expected) in [
            (22, "198.51.100.0/28 0.0.0.0 1", "198.51.100.0/28"),
            (22, "198.51.100.32/28 192.0.2.1 1 2 -1 3 400", "198.51.100.32/28"),
            (22, "198.51.100.33/28", "198.51.100.32/28"),
            (22, "198.51.100.0 192.0.2.1 1", "198.51.100.0/24"),
            (22, "172.16.0.0 0.0.0.0", "172.16.0.0/16"),
            (22, "10.0.0.0", "10.0.0.0/8"),
            (22, "198.51.100.64  255.255.255.192 192.0.2.1", "198.51.100.64/26"),
            (22, "198.51.100.7/32\0", "198.51.100.7/32"),
            (99, "2001:db8:7::/48 2001:db8::1 1", "2001:db8:7::/48"),
            (99, "2001:db8:7:1::9/64 :: 1", "2001:db8:7:1::/64"),
            // It is everybody's, or that of the host itself.
            (22, "0.0.0.0/0 192.0.2.1 1", ""),
            (99, "::/0 :: 1", ""),
            (22, "127.0.0.0/8", ""),
        ] {
            assert_eq!(route(kind, text), (expected.to_owned(), None), "{text}");
        }
        for text in [
            "",
            "default 192.0.2.1",
            "vrf blue 10.0.0.0",
            "10.1.2.3 0.0.0.0 1",
            "224.0.0.0",
            "198.51.100.7 255.255.255.0",
            "2001:db8::1",
            "10.0.0.0/33",
        ] {
            assert_eq!(route(22, text), (String::new(), Some(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn wrong_attributes_are_named() {
        let reason = |attributes: &[(u8, &[u8])]| read(attributes).unwrap_err().0;
        assert_eq!(reason(&[SESSION]), "it has no Acct-Status-Type");
        assert_eq!(reason(&[START]), "it has no Acct-Session-Id");
        assert_eq!(reason(&[(40, &[1])]), "its attribute 40 has 1 bytes, not 4");
        assert_eq!(reason(&[START, SESSION, (8, &[1, 2, 3])]), "its attribute 8 has 3 bytes, not 4");
        assert!(reason(&[START, SESSION, (97, &[0])]).contains("is no IPv6 prefix"));
        assert!(reason(&[START, SESSION, (97, &[0, 129, 1])]).contains("is no IPv6 prefix"));
        assert!(reason(&[START, SESSION, (123, &[0, 64])]).contains("is no IPv6 prefix"));
        assert!(reason(&[START, SESSION, (123, &[0; 19])]).contains("is no IPv6 prefix"));
        let of_nas: (u8, &[u8]) = (40, &[0, 0, 0, 8]);
        assert_eq!(read(&[of_nas]).unwrap().status, Status::NoSessions);
    }

    proptest! {
        #[test]
        fn any_attributes_are_a_report_or_malformed(
            attributes in proptest::collection::vec(
                (prop_oneof![any::<u8>(), Just(97), Just(123), Just(168), Just(8), Just(22), Just(40)],
                 proptest::collection::vec(any::<u8>(), 0..24)), 0..12),
        ) {
            let attributes: Vec<(u8, &[u8])> = attributes.iter().map(|(kind, value)| (*kind, &value[..])).collect();
            for by in [LabelBy::UserName, LabelBy::CallingStationId, LabelBy::Class] {
                read_by(by, &attributes).ok();
                read_by(by, &[&[START, SESSION], &attributes[..]].concat()).ok();
            }
        }
    }
}
