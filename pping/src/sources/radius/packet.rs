//! RADIUS packets (RFC 2865, section 3; RFC 2866, sections 3 and 4): their frame, their attributes and their authenticators.

use md5::{Digest as _, Md5};

/// The code of an Accounting-Request.
pub(super) const ACCOUNTING_REQUEST: u8 = 4;

/// The code of an Accounting-Response.
const ACCOUNTING_RESPONSE: u8 = 5;

/// The longest packet, in bytes.
pub(super) const MAX_LENGTH: usize = 4096;

/// The length of the header: code, identifier, length and authenticator.
const HEADER: usize = 20;

/// Where the authenticator begins.
const AUTHENTICATOR: usize = 4;

/// The attribute that a response repeats.
const PROXY_STATE: u8 = 33;

/// Bytes are no RADIUS packet, or an attribute is not what its type says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) String);

/// A packet whose frame is right: the lengths of its attributes add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    /// What it asks for.
    pub(super) code: u8,
    /// Tells requests of the same client apart.
    pub(super) identifier: u8,
    /// The request authenticator.
    pub(super) authenticator: [u8; 16],
    header: &'a [u8; HEADER],
    attributes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the frame. Bytes after the length of the packet are padding (RFC 2865, section 3).
    ///
    /// # Errors
    /// If the packet or an attribute is shorter than it says, or shorter than it can be.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let short = || Malformed(format!("{} bytes are no packet", bytes.len()));
        let (header, _) = bytes.split_first_chunk::<HEADER>().ok_or_else(short)?;
        let [code, identifier, high, low, authenticator @ ..] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > MAX_LENGTH {
            return Err(Malformed(format!("its length is {length}, more than {MAX_LENGTH}")));
        }
        let attributes = bytes
            .get(HEADER..length)
            .ok_or_else(|| Malformed(format!("its length is {length}, but {} bytes came", bytes.len())))?;
        let packet = Self { code, identifier, authenticator, header, attributes };
        let end = packet.attributes().last().map_or(0, |attribute| attribute.end);
        if end != attributes.len() {
            return Err(Malformed(format!("the attribute at byte {} has a wrong length", HEADER + end)));
        }
        Ok(packet)
    }

    /// The attributes, up to the first one with a wrong length.
    pub(super) fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let all = self.attributes;
        let mut start = 0;
        std::iter::from_fn(move || {
            let &[kind, length, ..] = all.get(start..)? else { return None };
            let end = start + usize::from(length);
            // A length of less than 2 leaves out the type and the length themselves.
            let value = all.get(start + 2..end)?;
            start = end;
            Some(Attribute { kind, value, end })
        })
    }

    /// Whether this accounting request comes from somebody who knows the secret (RFC 2866, section 3).
    pub(super) fn is_authentic(&self, secret: &[u8]) -> bool {
        let hash = Md5::new()
            .chain_update(&self.header[..AUTHENTICATOR])
            .chain_update([0; 16])
            .chain_update(self.attributes)
            .chain_update(secret)
            .finalize();
        // All bytes are compared, so that the time does not tell how many were right.
        hash.iter().zip(self.authenticator).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }

    /// The Accounting-Response to this request. Proxies find their state in it again (RFC 2865, section 5.33).
    pub(super) fn response(&self, secret: &[u8]) -> Vec<u8> {
        let mut response = vec![ACCOUNTING_RESPONSE, self.identifier, 0, 0];
        response.extend(self.authenticator);
        for Attribute { kind, value, .. } in self.attributes().filter(|it| it.kind == PROXY_STATE) {
            // The attribute was that long when it came.
            response.extend([kind, value.len() as u8 + 2]);
            response.extend(value);
        }
        // It is no longer than the request.
        let length = (response.len() as u16).to_be_bytes();
        response[2..AUTHENTICATOR].copy_from_slice(&length);
        let hash = Md5::new().chain_update(&response).chain_update(secret).finalize();
        response[AUTHENTICATOR..HEADER].copy_from_slice(&hash);
        response
    }
}

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attribute<'a> {
    /// Its type.
    pub(super) kind: u8,
    /// Its value.
    pub(super) value: &'a [u8],
    /// Where it ends among the attributes.
    end: usize,
}

/// Makes an accounting request, for tests.
#[cfg(test)]
pub(super) fn request(identifier: u8, attributes: &[(u8, &[u8])], secret: &[u8]) -> Vec<u8> {
    let mut bytes = vec![ACCOUNTING_REQUEST, identifier, 0, 0];
    bytes.extend([0; 16]);
    for (kind, value) in attributes {
        bytes.extend([*kind, value.len() as u8 + 2]);
        bytes.extend(*value);
    }
    let length = (bytes.len() as u16).to_be_bytes();
    bytes[2..4].copy_from_slice(&length);
    let hash = Md5::new().chain_update(&bytes).chain_update(secret).finalize();
    bytes[4..20].copy_from_slice(&hash);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sent by radclient 3.2.1 with the secret `testing123`: the start of a session of `bob`.
    const BY_RADCLIENT: &str = "04cc00854da7e828be4cb671a2d46f315361293c2806000000010105626f622c033108060a010203 \
        6114004020010db80001000000000000000000007b14003820010db8010000000000000000000000 \
        a81220010db80001000000000000000000072006626e6731190401ff1f1330323a30303a30303a30 \
        303a30303a3031290600000003";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (16 * pair[0] + pair[1]) as u8).collect()
    }

    #[test]
    fn a_packet_of_radclient_is_authentic_with_its_secret_only() {
        let bytes = bytes(BY_RADCLIENT);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet.code, ACCOUNTING_REQUEST);
        assert!(packet.is_authentic(b"testing123"));
        assert!(!packet.is_authentic(b"testing124") && !packet.is_authentic(b""));
        let values: Vec<_> = packet.attributes().map(|it| (it.kind, it.value)).collect();
        assert!(values.contains(&(1, b"bob")) && values.contains(&(40, &[0, 0, 0, 1])), "{values:?}");
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(!Packet::parse(&changed).unwrap().is_authentic(b"testing123"));
    }

    #[test]
    fn a_response_has_the_state_of_proxies_and_a_right_authenticator() {
        let attributes: [(u8, &[u8]); 4] =
            [(PROXY_STATE, b"one"), (1, b"bob"), (PROXY_STATE, b""), (44, b"1")];
        let request = request(7, &attributes, b"secret");
        let packet = Packet::parse(&request).unwrap();
        let response = packet.response(b"secret");
        assert_eq!(&response[..4], [ACCOUNTING_RESPONSE, 7, 0, 27]);
        assert_eq!(&response[20..], b"\x21\x05one\x21\x02");
        let expected = Md5::new()
            .chain_update(&response[..4])
            .chain_update(packet.authenticator)
            .chain_update(&response[20..])
            .chain_update(b"secret")
            .finalize();
        assert_eq!(&response[4..20], &expected[..]);
    }

    #[test]
    fn padding_is_no_part_of_a_packet() {
        let mut padded = request(1, &[(1, b"bob")], b"secret");
        padded.extend([0; 9]);
        let packet = Packet::parse(&padded).unwrap();
        assert!(packet.is_authentic(b"secret"));
        assert_eq!(packet.attributes().count(), 1);
    }

    #[test]
    fn wrong_lengths_are_named() {
        let good = request(1, &[(1, b"bob"), (44, b"x")], b"secret");
        let reason = |bytes: &[u8]| Packet::parse(bytes).unwrap_err().0;
        assert_eq!(reason(&good[..19]), "19 bytes are no packet");
        assert_eq!(reason(&good[..24]), "its length is 28, but 24 bytes came");
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            reason(&bytes)
        };
        assert_eq!(with(2, 17), "its length is 4380, more than 4096");
        assert_eq!(with(3, 19), "its length is 19, but 28 bytes came");
        for length in [0, 1, 9, 255] {
            assert_eq!(with(21, length), "the attribute at byte 20 has a wrong length");
        }
        assert_eq!(with(26, 4), "the attribute at byte 25 has a wrong length");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_malformed(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(packet) = Packet::parse(&bytes) {
                packet.is_authentic(b"secret");
                packet.response(b"secret");
            }
        }

        #[test]
        fn attributes_are_those_that_were_sent(
            attributes in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
            cut in 0_usize..60,
        ) {
            let sent: Vec<(u8, &[u8])> = attributes.iter().map(|(kind, value)| (*kind, &value[..])).collect();
            let bytes = request(1, &sent, b"secret");
            let packet = Packet::parse(&bytes).unwrap();
            let read: Vec<_> = packet.attributes().map(|it| (it.kind, it.value)).collect();
            prop_assert_eq!(read, sent);
            // What the network cuts off is malformed.
            if cut > 0 {
                prop_assert!(Packet::parse(&bytes[..bytes.len().saturating_sub(cut)]).is_err());
            }
        }
    }
}
