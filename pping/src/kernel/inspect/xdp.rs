//! XDP support of drivers, by the generic netlink family `netdev` (Linux 6.3).

use std::{collections::HashMap, io};

use netlink_packet_generic::{
    GenlFamily, GenlHeader, GenlMessage,
    ctrl::{GenlCtrl, GenlCtrlCmd, nlas::GenlCtrlAttrs},
};
use rtnetlink::{
    packet_core::{
        DecodeError, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage,
        NetlinkPayload, NetlinkSerializable, NlasIterator, ParseableParametrized,
    },
    sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC},
};

// Of linux/netdev.h.
const FAMILY: &str = "netdev";
const DEV_GET: u8 = 1;
const ATTRIBUTE_IFINDEX: u16 = 1;
const ATTRIBUTE_XDP_FEATURES: u16 = 3;
/// `NETDEV_XDP_ACT_BASIC`: programs can be attached, and drop, pass and send back.
const BASIC: u64 = 1;

/// The XDP features of each interface's driver.
#[derive(Debug)]
pub(crate) struct Drivers(HashMap<u32, u64>);

impl Drivers {
    /// Asks for all interfaces; `None` if the kernel is too old to answer.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub(crate) fn ask() -> io::Result<Option<Self>> {
        let socket = Socket::new(NETLINK_GENERIC)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let Some(family) = family(&socket)? else { return Ok(None) };
        let mut message = GenlMessage::from_payload(Dev::default());
        message.set_resolved_family_id(family);
        let devices = request(&socket, message, NLM_F_REQUEST | NLM_F_DUMP)?;
        Ok(Some(Self(devices.into_iter().map(|device| (device.ifindex, device.features)).collect())))
    }

    /// Whether the driver of an interface runs XDP itself.
    pub(crate) fn has_native(&self, ifindex: u32) -> bool {
        self.0.get(&ifindex).is_some_and(|features| features & BASIC != 0)
    }
}

/// Returns the kernel's number of the family, if the kernel has the family.
fn family(socket: &Socket) -> io::Result<Option<u16>> {
    let nlas = vec![GenlCtrlAttrs::FamilyName(FAMILY.to_owned())];
    let message = GenlMessage::from_payload(GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas });
    let answers: Vec<GenlCtrl> = match request(socket, message, NLM_F_REQUEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        answers => answers?,
    };
    Ok(answers.into_iter().flat_map(|answer| answer.nlas).find_map(|attribute| match attribute {
        GenlCtrlAttrs::FamilyId(id) => Some(id),
        _ => None,
    }))
}

/// Sends a message, and returns its answers: one, unless it asks for a dump.
fn request<T>(socket: &Socket, message: GenlMessage<T>, flags: u16) -> io::Result<Vec<T>>
where
    T: std::fmt::Debug,
    GenlMessage<T>: NetlinkSerializable + NetlinkDeserializable,
{
    let mut message = NetlinkMessage::from(message);
    message.header.flags = flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answers = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = &datagram[..];
        while !rest.is_empty() {
            let answer = NetlinkMessage::<GenlMessage<T>>::deserialize(rest).map_err(io::Error::other)?;
            rest = rest.get((answer.header.length as usize).next_multiple_of(4)..).unwrap_or_default();
            match answer.payload {
                NetlinkPayload::InnerMessage(inner) => answers.push(inner.payload),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => return Ok(answers),
            }
            if flags & NLM_F_DUMP != NLM_F_DUMP {
                return Ok(answers);
            }
        }
    }
}

/// The family's answer about an interface.
#[derive(Clone, Copy, Debug, Default)]
struct Dev {
    ifindex: u32,
    features: u64,
}

impl GenlFamily for Dev {
    fn family_name() -> &'static str {
        FAMILY
    }

    fn command(&self) -> u8 {
        DEV_GET
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Dev {
    fn buffer_len(&self) -> usize {
        0
    }

    fn emit(&self, _buffer: &mut [u8]) {}
}

impl ParseableParametrized<[u8], GenlHeader> for Dev {
    fn parse_with_param(bytes: &[u8], _header: GenlHeader) -> Result<Self, DecodeError> {
        let mut dev = Self::default();
        for attribute in NlasIterator::new(bytes) {
            let attribute = attribute?;
            let value = attribute.value();
            match attribute.kind() {
                ATTRIBUTE_IFINDEX => dev.ifindex = value.try_into().map_or(0, u32::from_ne_bytes),
                ATTRIBUTE_XDP_FEATURES => dev.features = value.try_into().map_or(0, u64::from_ne_bytes),
                _ => {}
            }
        }
        Ok(dev)
    }
}
