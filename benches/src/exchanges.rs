//! A packet and its answer, for each method.

use anyhow::{Context as _, Result};
use pping_common::{
    exchange::{Exchange, Field, MADE, Made},
    rtt::Method,
};

use crate::frames;

/// Where the ports are in a frame, and after them the numbers of TCP, the identifier and the number of an echo, and
/// the payload of UDP.
const PORTS: u32 = 34;
const SEQUENCE: u32 = 38;
const ACKNOWLEDGEMENT: u32 = 42;
const ECHO: u32 = 38;
const PAYLOAD: u32 = 42;
/// Of TCP's timestamps, the second begins here.
const TSVAL: u32 = 58;
const TSECR: u32 = 62;

/// Octets of each segment.
const STEP: u32 = 1400;

/// An exchange of which each is a sample.
pub(crate) struct Sampled {
    pub(crate) method: Method,
    pub(crate) exchange: Exchange,
    /// What has to happen before.
    pub(crate) before: Option<Exchange>,
    /// How many there can be.
    pub(crate) most: u32,
}

/// One for each method.
pub(crate) fn of_each_method() -> Result<Vec<Sampled>> {
    let tcp = frames::tcp(1, 2, STEP as usize);
    let answer = frames::answer_of_tcp;
    let endless = |method, exchange| Sampled { method, exchange, before: None, most: u32::MAX };
    let quic = exchange(
        made(&frames::quic_initial(true), [ports(1 << 16, 443), Field::NONE])?,
        made(&frames::quic_initial(false), [ports(1, 443 << 16), Field::NONE])?,
    );
    let fixed = exchange(
        made(&frames::quic_initial(true), [Field::NONE; 2])?,
        made(&frames::quic_initial(false), [Field::NONE; 2])?,
    );
    Ok(vec![
        endless(
            Method::TcpTs,
            exchange(
                made(&tcp, [counted(TSVAL, 0, 1), counted(SEQUENCE, 0, STEP)])?,
                made(&answer(true, 0x10), [counted(TSECR, 0, 1), counted(ACKNOWLEDGEMENT, STEP, STEP)])?,
            ),
        ),
        endless(
            Method::TcpSeq,
            exchange(
                made(&frames::tcp_without_timestamps(), [counted(SEQUENCE, 0, STEP), Field::NONE])?,
                made(&answer(false, 0x10), [counted(ACKNOWLEDGEMENT, STEP, STEP), Field::NONE])?,
            ),
        ),
        endless(
            Method::TcpHandshake,
            exchange(
                made(&frames::syn(), [counted(SEQUENCE, 0, STEP), Field::NONE])?,
                made(&answer(false, 0x12), [counted(ACKNOWLEDGEMENT, 1, STEP), Field::NONE])?,
            ),
        ),
        endless(
            Method::IcmpEcho,
            exchange(
                made(&frames::echo_request(), [number_of_echo(), Field::NONE])?,
                made(&frames::echo_reply(), [number_of_echo(), Field::NONE])?,
            ),
        ),
        endless(
            Method::Dns,
            exchange(
                made(&frames::dns(false), [id_of_dns(), Field::NONE])?,
                made(&frames::dns(true), [id_of_dns(), Field::NONE])?,
            ),
        ),
        Sampled {
            before: Some(fixed),
            ..endless(
                Method::QuicSpin,
                exchange(
                    made(&frames::quic_short(true), [spin(), Field::NONE])?,
                    made(&frames::quic_short(false), [spin(), Field::NONE])?,
                ),
            )
        },
        // Once in a flow.
        Sampled { most: 1 << 16, ..endless(Method::QuicHandshake, quic) },
    ])
}

fn exchange(there: Made, back: Made) -> Exchange {
    Exchange { packets: [there, back] }
}

fn made(frame: &[u8], fields: [Field; 2]) -> Result<Made> {
    let start = frame.first_chunk::<MADE>().context("a frame is too short")?;
    Ok(Made { start: *start, fields })
}

fn counted(at: u32, base: u32, step: u32) -> Field {
    Field { at, base, step, mask: u32::MAX }
}

/// The ports, one of which is another one each time.
fn ports(step: u32, base: u32) -> Field {
    Field { at: PORTS, base, step, mask: 0xffff * step }
}

/// The identifier of an echo, which stays, and its number.
fn number_of_echo() -> Field {
    Field { at: ECHO, base: 0x1234 << 16, step: 1, mask: 0xffff }
}

/// The checksum, which is none, and the ID.
fn id_of_dns() -> Field {
    Field { at: PAYLOAD - 2, base: 0, step: 1, mask: 0xffff }
}

/// The first octet of a short header, and what follows.
fn spin() -> Field {
    Field { at: PAYLOAD, base: 0x40 << 24, step: 0x20 << 24, mask: 0x20 << 24 }
}
