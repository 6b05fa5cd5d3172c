//! Residence times that are known: of a token bucket with a known rate, and of a queue that is removed.

mod forwarding;

use std::{
    io::ErrorKind,
    iter,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use pping::kernel::{load, load_options::LoadOptions, loaded::Kernel};
use pping_common::{
    abi::{Part, Residence},
    hist,
};
use pping_lab::{
    Namespace, run,
    traffic::{Behaviour, Pace, Server, send},
    veth::{End, Offloads, connect},
};

use super::{attached::link, rig::SETTINGS};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 20, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 20, 0, 2);

/// Bytes of a datagram, and of its frame.
const DATAGRAM: usize = 1000;
const FRAME: usize = DATAGRAM + 8 + 20 + 14;

/// The bucket's rate in bytes per second, and its burst in bytes.
const RATE: usize = 1_000_000;
const BURST: usize = 2_000;

const EVERY_PACKET: LoadOptions = LoadOptions { residence: Some(1), ..SETTINGS };

/// Two hosts and a cable.
struct Cable {
    sender: Namespace,
    receiver: Namespace,
}

impl Cable {
    fn new() -> Self {
        let (sender, receiver) = (Namespace::new("sender").unwrap(), Namespace::new("receiver").unwrap());
        let ends = [End::new(&sender, "left"), End::new(&receiver, "right")];
        connect(ends[0], ends[1], Offloads::On).unwrap();
        ends[0].add_address(SENDER, 24).unwrap();
        ends[1].add_address(RECEIVER, 24).unwrap();
        let cable = Self { sender, receiver };
        run(cable.sender.command("ping").args(["-c1", "-W5", &RECEIVER.to_string()])).unwrap();
        cable
    }

    /// Changes the root qdisc of `left`.
    fn qdisc(&self, arguments: &str) {
        self.try_qdisc(arguments).unwrap();
    }

    fn try_qdisc(&self, arguments: &str) -> pping_lab::Result<String> {
        let (action, qdisc) = arguments.split_once(' ').unwrap_or((arguments, ""));
        let mut tc = self.sender.command("tc");
        run(tc.args(["qdisc", action, "dev", "left", "root"]).args(qdisc.split_whitespace()))
    }

    /// Sets a token bucket with this rate in bytes per second and room for this many packets.
    fn bucket(&self, rate: usize, packets: usize) {
        self.qdisc(&format!("replace tbf rate {rate}bps burst {BURST} limit {}", packets * FRAME));
    }

    fn watch(&self, options: &LoadOptions) -> (Kernel, u16) {
        self.sender
            .enter(|| {
                let mut kernel = load::load(options, false).unwrap();
                let id = link("left").register(&mut kernel).unwrap();
                (kernel, id)
            })
            .unwrap()
    }

    /// Sends numbered datagrams as fast as possible. Returns when each was sent.
    fn send(&self, datagrams: usize) -> Vec<Instant> {
        self.sender
            .enter(|| {
                let (mut sockets, mut times) = (Vec::new(), Vec::new());
                let mut payload = [0; DATAGRAM];
                for number in 0..datagrams {
                    // The kernel limits how many bytes of a socket may be queued, so each 50 datagrams have their own
                    // socket.
                    if number % 50 == 0 {
                        let socket = UdpSocket::bind((SENDER, 0)).unwrap();
                        socket.connect((RECEIVER, 9)).unwrap();
                        sockets.push(socket);
                    }
                    let socket = &sockets[number / 50];
                    times.push(Instant::now());
                    payload[..8].copy_from_slice(&number.to_be_bytes());
                    // The peer has no socket at that port, so sends may be refused. If the queue is full, the packet is
                    // lost like any other.
                    if let Err(error) = socket.send(&payload) {
                        let kind = error.kind();
                        assert!(
                            kind == ErrorKind::ConnectionRefused
                                || error.raw_os_error() == Some(libc::ENOBUFS),
                            "{error}"
                        );
                    }
                }
                times
            })
            .unwrap()
    }
}

/// Computes how long the mean packet and the last one wait in the bucket if they come at these times, in seconds.
fn waits(times: &[Instant]) -> [f64; 2] {
    let (rate, burst, frame) = (RATE as f64, BURST as f64, FRAME as f64);
    let (mut tokens, mut left, mut waits, mut last) = (burst, 0.0_f64, 0.0, 0.0);
    for time in times {
        let came = time.duration_since(times[0]).as_secs_f64();
        let mut goes = came.max(left);
        tokens = burst.min(tokens + (goes - left) * rate);
        if tokens < frame {
            goes += (frame - tokens) / rate;
            tokens = frame;
        }
        tokens -= frame;
        (left, last) = (goes, goes - came);
        waits += last;
    }
    [waits / times.len() as f64, last]
}

fn queue(kernel: &Kernel, id: u16) -> Residence {
    kernel.residence.as_ref().unwrap().read(Part::Queue, id).unwrap()
}

fn count(residence: &Residence) -> u64 {
    residence.bins.iter().sum()
}

/// Returns the longest time, rounded up to the bound of its bin.
fn longest(residence: &Residence) -> Duration {
    let bin = residence.bins.iter().rposition(|&count| count > 0);
    Duration::from_nanos(bin.map_or(0, hist::upper_bound))
}

/// How many followed packets may have no known end: depending on what its CPU was doing, the kernel now and then skips
/// a program at a tracepoint.
const MAX_UNSEEN_ENDS: u64 = 12;

/// Returns how many followed packets have neither a time nor a loss.
fn unfinished(residence: &Residence) -> u64 {
    residence.followed - (count(residence) + residence.dropped + residence.replaced)
}

/// Waits until all followed packets have ended, or all but [`MAX_UNSEEN_ENDS`] and nothing changes any more.
fn settled(kernel: &Kernel, id: u16) -> Residence {
    let (began, mut found) = (Instant::now(), queue(kernel, id));
    loop {
        thread::sleep(Duration::from_millis(500));
        let now = queue(kernel, id);
        if unfinished(&now) == 0 || (unfinished(&now) <= MAX_UNSEEN_ENDS && now == found) {
            return now;
        }
        found = now;
        assert!(began.elapsed() < Duration::from_secs(30), "{found:?}");
    }
}

#[test]
fn queueing_takes_as_long_as_a_bucket_of_known_rate_makes_it() {
    const PACKETS: usize = 300;
    let cable = Cable::new();
    cable.bucket(RATE, 2 * PACKETS);
    let (kernel, id) = cable.watch(&EVERY_PACKET);
    let [expected, last] = waits(&cable.send(PACKETS));
    let found = settled(&kernel, id);
    // All packets are followed. A packet that the receiver drops may count as dropped if its departure from the queue
    // was not seen.
    assert!(count(&found) + MAX_UNSEEN_ENDS >= PACKETS as u64, "{found:?}");
    let mean = found.sum as f64 / count(&found) as f64 / 1e9;
    eprintln!("mean {mean} s, by arithmetic {expected} s");
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} s, by arithmetic {expected} s");
    let longest = longest(&found).as_secs_f64();
    assert!(longest > 0.95 * last && longest < 1.15 * last, "{longest} s, by arithmetic {last} s");
}

#[test]
fn one_packet_in_some_is_followed_and_its_mean_is_that_of_all() {
    const PACKETS: usize = 2000;
    let cable = Cable::new();
    cable.bucket(4 * RATE, 2 * PACKETS);
    let (kernel, id) = cable.watch(&LoadOptions { residence: Some(8), ..SETTINGS });
    cable.send(PACKETS);
    let found = settled(&kernel, id);
    eprintln!("{} of {PACKETS}", found.followed);
    // Eight standard deviations: a gap that is uniform from 1 to 15 has one of about 4.3.
    let gaps = (PACKETS / 8) as f64;
    let tolerance = 8.0 * 4.3 / 8.0 * gaps.sqrt();
    assert!((found.followed as f64 - gaps).abs() < tolerance, "{} of {PACKETS}", found.followed);
    let expected = (PACKETS * FRAME) as f64 / (4 * RATE) as f64 / 2.0;
    let mean = found.sum as f64 / count(&found) as f64 / 1e9;
    assert!((mean / expected - 1.0).abs() < 0.2, "{mean} s, by arithmetic {expected} s");
}

#[test]
fn packets_of_a_removed_queue_are_counted() {
    const PACKETS: usize = 200;
    // The packets take seconds to leave, as a busy machine may be slow to replace the queue.
    const SLOW: usize = RATE / 20;
    let cable = Cable::new();
    cable.bucket(SLOW, 2 * PACKETS);
    let (kernel, id) = cable.watch(&EVERY_PACKET);
    let began = Instant::now();
    cable.send(PACKETS);
    cable.qdisc("replace pfifo limit 1000");
    let elapsed = began.elapsed();
    let found = settled(&kernel, id);
    // Some packets had left before the queue was replaced.
    let sent = elapsed.as_secs_f64() * SLOW as f64 / FRAME as f64 + 10.0;
    assert!(found.dropped > 100 && (count(&found) as f64) < sent, "{found:?}");
    assert!(found.replaced <= MAX_UNSEEN_ENDS, "{found:?}");
    assert!(longest(&found) <= elapsed * 2, "{found:?}");

    // Deleting the interface has the same effect.
    cable.bucket(SLOW, 2 * PACKETS);
    cable.send(PACKETS);
    run(cable.sender.command("ip").args(["link", "delete", "left"])).unwrap();
    let after = settled(&kernel, id);
    assert!(after.dropped > found.dropped + 100, "{after:?}");
    assert!(after.replaced <= 2 * MAX_UNSEEN_ENDS, "{after:?}");
}

/// Sends a bulk transfer with packets of up to 64 KiB through a bucket with room for a quarter of a second. Returns the
/// residence times and how long the transfer took.
fn bulk(burst: usize, every: u32) -> (Residence, Duration) {
    const MEGABYTES: usize = 6;
    let cable = Cable::new();
    cable.qdisc(&format!("replace tbf rate {}bps burst {burst} limit {}", 4 * RATE, RATE));
    let (kernel, id) = cable.watch(&LoadOptions { residence: Some(every), ..SETTINGS });
    let server = Server::start(&cable.receiver, 0, Behaviour::Sink).unwrap();
    let began = Instant::now();
    let pace = Pace { chunks: 6 * MEGABYTES as u32, bytes: 1_000_000 / 6, pause: Duration::ZERO };
    send(&cable.sender, (RECEIVER, server.port()), pace).unwrap();
    (queue(&kernel, id), began.elapsed())
}

#[test]
fn a_super_packet_counts_as_one_packet() {
    let (found, elapsed) = bulk(100_000, 1);
    eprintln!("{} of {} in {elapsed:?}, longest {:?}", count(&found), found.followed, longest(&found));
    assert!(count(&found) > 30 && found.replaced <= MAX_UNSEEN_ENDS, "{found:?}");
    // The limit holds a quarter of a second, and the burst adds to it.
    assert!(longest(&found) < Duration::from_millis(320), "{found:?}");
    assert!(found.sum / count(&found) > 5_000_000, "{found:?}");
}

#[test]
fn split_super_packet_has_the_time_of_its_first_part() {
    // One super-packet is looked for at a time, for up to a second. If the kernel skips the tracepoint of its first part, few
    // others of the transfer have a time.
    let (found, elapsed) =
        iter::repeat_with(|| bulk(BURST, 4)).take(5).find(|(found, _)| count(found) > 10).unwrap();
    eprintln!(
        "{} of {} in {elapsed:?}, longest {:?}, mean {} ms, {} replaced",
        count(&found),
        found.followed,
        longest(&found),
        found.sum / count(&found) / 1_000_000,
        found.replaced
    );
    assert!(longest(&found) < Duration::from_millis(320), "{found:?}");
    // TCP limits how much it queues on its own host.
    assert!(found.sum / count(&found) > 1_000_000, "{found:?}");
}

#[test]
fn a_queue_of_another_namespace_is_not_this_one() {
    let (watched, other) = (Cable::new(), Cable::new());
    let index = |cable: &Cable| cable.sender.enter(|| link("left").ifindex).unwrap();
    assert_eq!(index(&watched), index(&other), "namespaces count their interfaces alike");
    other.bucket(RATE, 400);
    let (kernel, id) = watched.watch(&EVERY_PACKET);
    other.send(100);
    assert_eq!(queue(&kernel, id), Residence::ZERO);
}

/// Two CPUs send mostly identical packets into a queue that overflows, while the queue is replaced and the cable is
/// unplugged.
#[test]
fn no_time_is_longer_than_its_packet_lived() {
    const SECONDS: u64 = 6;
    let cable = Cable::new();
    cable.bucket(RATE, 50);
    let (kernel, id) = cable.watch(&EVERY_PACKET);
    let began = Instant::now();
    let is_over = || began.elapsed() > Duration::from_secs(SECONDS);
    thread::scope(|scope| {
        for port in [9, 10] {
            let sender = &cable.sender;
            scope.spawn(move || {
                sender.enter(|| {
                    let socket = UdpSocket::bind((SENDER, 0)).unwrap();
                    while !is_over() {
                        // The bytes are the same each time, and so are the packets' addresses in memory.
                        let to = SocketAddr::from((RECEIVER, port));
                        socket.send_to(&[7; 200], to).ok();
                        thread::sleep(Duration::from_micros(100));
                    }
                })
            });
        }
        for round in 0.. {
            if is_over() {
                break;
            }
            let limit = 50 * FRAME;
            cable.qdisc(match round % 3 {
                0 => "replace pfifo limit 20",
                1 => "replace bfifo limit 9000",
                _ => "replace htb",
            });
            cable.qdisc(&format!("replace tbf rate 200kbps burst {BURST} limit {limit}"));
            if round % 5 == 4 {
                for state in ["down", "up"] {
                    run(cable.sender.command("ip").args(["link", "set", "left", state])).unwrap();
                }
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    let found = settled(&kernel, id);
    eprintln!(
        "{} followed, {} timed, {} dropped, {} replaced, longest {:?}",
        found.followed,
        count(&found),
        found.dropped,
        found.replaced,
        longest(&found)
    );
    assert!(count(&found) > 500 && found.dropped > 50, "{found:?}");
    // A full queue of 52 kB takes 260 ms at 200 kB a second, and each round replaces it.
    assert!(longest(&found) < Duration::from_millis(400), "{found:?}");
    assert_eq!(found.bins[hist::OVERFLOW], 0, "negative ones would be there");
}
