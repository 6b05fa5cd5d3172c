//! The packets that both ends of a flow send, step by step. Much time passes between two steps of a flow. The packets
//! of one step are sent at the same time, by different threads on different CPUs.
//!
//! Each step repeats an echo or a timestamp of an earlier step, much later. So if pping misses a packet without
//! noticing, it reports a sample that is wrong by a whole step.

use std::net::IpAddr;

use crate::frames::{ACK, Ip, PSH, SYN, TCP, Tcp, UDP, dns, echo, timestamps, v4, v6};

/// The number of threads that send a step: two at each end.
pub(super) const SEATS: usize = 4;
const NEAR: usize = 0;
const NEAR_TOO: usize = 1;
const FAR: usize = 2;
const FAR_TOO: usize = 3;

/// The frames that each thread sends.
pub(super) type Step = [Vec<Vec<u8>>; SEATS];

/// How many packets a thread sends in a row, so that threads overlap even if they do not begin at the same moment.
const BURST: u16 = 3;

const PAYLOAD: usize = 11;
const DNS_PORT: u16 = 53;

/// A flow's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP with timestamps.
    Stamps,
    /// TCP without timestamps.
    Numbers,
    /// Echo requests from both ends, and the replies.
    Echoes,
    /// DNS queries from the near end.
    Queries,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Stamps, Self::Numbers, Self::Echoes, Self::Queries];
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    tsval: u32,
    /// The newest TSval received, which it echoes.
    tsecr: u32,
    sequence: u32,
    acknowledgement: u32,
}

/// A flow.
#[derive(Clone, Debug)]
pub(super) struct Script {
    kind: Kind,
    near: IpAddr,
    far: IpAddr,
    port: u16,
    ends: [End; 2],
    position: u32,
    number: u16,
}

impl Script {
    /// A flow of a kind between two hosts of a family. Its port distinguishes it.
    pub(super) fn new(kind: Kind, is_ipv6: bool, port: u16) -> Self {
        let [near, far] = [1, 2].map(|host| if is_ipv6 { v6(host) } else { v4(host) });
        let end = |start: u32| End { tsval: start, sequence: start, ..End::default() };
        Self { kind, near, far, port, ends: [end(1_000_000), end(5_000_000)], position: 0, number: 0 }
    }

    /// Returns the frames of the next step.
    pub(super) fn next(&mut self) -> Step {
        let position = self.position;
        self.position += 1;
        match self.kind {
            Kind::Stamps | Kind::Numbers if position < 3 => self.handshake(position),
            Kind::Stamps => self.stamps((position - 3) % 6),
            Kind::Numbers => self.numbers((position - 3) % 4),
            Kind::Echoes => self.echoes(position % 3),
            Kind::Queries => self.queries(position % 3),
        }
    }

    /// True if both ends have sent something.
    pub(super) fn is_open(&self) -> bool {
        self.position >= 3
    }

    fn handshake(&mut self, position: u32) -> Step {
        let mut step = Step::default();
        match position {
            0 => step[NEAR].push(self.segment(0, SYN, 0)),
            1 => {
                self.receive();
                step[FAR].push(self.segment(1, SYN | ACK, 0));
            }
            _ => {
                self.receive();
                self.ends[0].tsval += 1;
                step[NEAR].push(self.segment(0, ACK, 0));
            }
        }
        step
    }

    fn stamps(&mut self, position: u32) -> Step {
        let mut step = Step::default();
        match position {
            // Two threads send packets with the same new timestamps, and the other end sends new timestamps too.
            0 => {
                self.tick(10);
                for _ in 0..BURST {
                    self.tick(1);
                    step[NEAR].push(self.data(0));
                    step[NEAR_TOO].push(self.data(0));
                    step[FAR].push(self.data(1));
                }
            }
            // Both threads of both ends echo each timestamp at the same time.
            1 | 4 => {
                let newest = self.ends;
                for number in (0..u32::from(BURST)).rev() {
                    for (end, other) in [(0, 1), (1, 0)] {
                        self.ends[end].tsecr = newest[other].tsval - number;
                    }
                    self.tick(1);
                    for (seat, end) in [(NEAR, 0), (NEAR_TOO, 0), (FAR, 1), (FAR_TOO, 1)] {
                        step[seat].push(self.segment(end, ACK, 0));
                    }
                }
            }
            // Repeats the last echo, with new timestamps.
            2 => {
                for _ in 0..BURST {
                    self.tick(1);
                    step[NEAR].push(self.data(0));
                    step[FAR].push(self.data(1));
                    step[FAR_TOO].push(self.data(1));
                }
            }
            // Repeats the same timestamps.
            3 => {
                let newest = self.ends;
                for number in (0..u32::from(BURST)).rev() {
                    for (end, newest) in newest.iter().enumerate() {
                        self.ends[end].tsval = newest.tsval - number;
                    }
                    step[NEAR_TOO].push(self.data(0));
                    step[FAR].push(self.data(1));
                }
            }
            // Repeats the last echo.
            _ => {
                self.tick(1);
                step[NEAR].push(self.segment(0, ACK, 0));
                step[FAR_TOO].push(self.segment(1, ACK, 0));
            }
        }
        step
    }

    fn numbers(&mut self, position: u32) -> Step {
        let mut step = Step::default();
        for number in (0..BURST).rev() {
            match position {
                0 => {
                    step[NEAR].push(self.data(0));
                    step[FAR].push(self.data(1));
                }
                // Both threads of both ends acknowledge each segment at the same time.
                1 => {
                    self.receive();
                    for end in &mut self.ends {
                        end.acknowledgement -= u32::from(number) * PAYLOAD as u32;
                    }
                    for (seat, end) in [(NEAR, 0), (NEAR_TOO, 0), (FAR, 1), (FAR_TOO, 1)] {
                        step[seat].push(self.segment(end, ACK, 0));
                    }
                }
                // Repeats the last acknowledgement.
                2 => {
                    for (seat, end) in [(NEAR, 0), (NEAR_TOO, 0), (FAR, 1), (FAR_TOO, 1)] {
                        step[seat].push(self.segment(end, ACK, 0));
                    }
                }
                // Repeats it once more, while the other end sends.
                _ => {
                    step[NEAR_TOO].push(self.data(0));
                    step[FAR_TOO].push(self.segment(1, ACK, 0));
                }
            }
        }
        step
    }

    fn echoes(&mut self, position: u32) -> Step {
        if position == 0 {
            self.number += 2 * BURST;
        }
        let is_reply = position > 0;
        let of = |end: usize, number: u16| {
            let (source, destination) = if end == 0 { (self.near, self.far) } else { (self.far, self.near) };
            echo(source, destination, self.port, number, is_reply)
        };
        // One thread sends each request. Both threads of the other end send each reply.
        [0, 1, 2, 3].map(|seat| {
            let (from, count) = if is_reply { (0, 2 * BURST) } else { (BURST * (seat % 2) as u16, BURST) };
            (from..from + count).map(|number| of(seat / 2, self.number + number)).collect()
        })
    }

    fn queries(&mut self, position: u32) -> Step {
        if position == 0 {
            self.number += 2 * BURST;
        }
        let mut step = Step::default();
        for number in 0..2 * BURST {
            let id = self.number + number;
            if position == 0 {
                let query = dns((self.port, DNS_PORT), id, [1, 0], 30);
                let seat = NEAR + usize::from(number / BURST);
                step[seat].push(Ip::between(self.near, self.far).frame(UDP, &query));
            } else {
                let response = dns((DNS_PORT, self.port), id, [0x81, 0x80], 30);
                for seat in [FAR, FAR_TOO] {
                    step[seat].push(Ip::between(self.far, self.near).frame(UDP, &response));
                }
            }
        }
        step
    }

    /// Advances the clocks of both ends.
    fn tick(&mut self, ticks: u32) {
        for end in &mut self.ends {
            end.tsval += ticks;
        }
    }

    /// Both ends receive everything sent so far.
    fn receive(&mut self) {
        for (end, other) in [(0, 1), (1, 0)] {
            self.ends[end].tsecr = self.ends[other].tsval;
            self.ends[end].acknowledgement = self.ends[other].sequence;
        }
    }

    fn data(&mut self, end: usize) -> Vec<u8> {
        self.segment(end, ACK | PSH, PAYLOAD)
    }

    fn segment(&mut self, end: usize, flags: u8, payload: usize) -> Vec<u8> {
        let End { tsval, tsecr, sequence, acknowledgement } = self.ends[end];
        let options = if self.kind == Kind::Stamps {
            [&[1, 1][..], &timestamps(tsval, tsecr)].concat()
        } else {
            Vec::new()
        };
        self.ends[end].sequence += payload as u32 + u32::from(flags & SYN != 0);
        let (ip, ports) = if end == 0 {
            (Ip::between(self.near, self.far), (self.port, 443))
        } else {
            (Ip::between(self.far, self.near), (443, self.port))
        };
        let segment = Tcp { ports, flags, sequence, acknowledgement, payload, ..Tcp::with_options(options) };
        ip.frame(TCP, &segment.bytes())
    }
}
