//! A TSval that the rate limit kept from being recorded is not recorded later.

use std::{
    thread,
    time::{Duration, Instant},
};

use pping::kernel::load_options::LoadOptions;
use pping_common::{parse::LinkType, rtt::Rules};

use super::{
    frames::{ACK, Ip, PSH, TCP, Tcp, v4, v6},
    rig::{Program, Rig, SETTINGS, kernels, samples},
};

const LIMIT: Duration = Duration::from_millis(200);
const ATTEMPTS: usize = 20;

#[test]
fn a_rate_limited_tsval_is_not_recorded_when_it_is_seen_again() {
    let rules = Rules { rate_limit: LIMIT.as_nanos() as u64, ..SETTINGS.rules };
    for settings in kernels() {
        let mut rig = Rig::with(LoadOptions { rules, ..settings }, LinkType::Ethernet);
        for [here, there] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
            let send = |rig: &mut Rig, tsval, tsecr| {
                let segment = Tcp { ports: (40_000, 443), flags: ACK | PSH, ..Tcp::stamped(tsval, tsecr) };
                rig.send(Program::Egress, &Ip::between(here, there).frame(TCP, &segment.bytes()));
            };
            let answer = |rig: &mut Rig, tsval, tsecr| {
                let segment = Tcp { ports: (443, 40_000), flags: ACK | PSH, ..Tcp::stamped(tsval, tsecr) };
                rig.send(Program::Ingress, &Ip::between(there, here).frame(TCP, &segment.bytes()));
            };
            // On a busy machine the limit may expire too soon, and the test tries again.
            let in_time = (0..ATTEMPTS).any(|_| {
                rig.start_over();
                let began = Instant::now();
                // The first TSvals seen in mid-stream are not recorded, as earlier packets may have carried them.
                send(&mut rig, 10, 0);
                answer(&mut rig, 90, 9);
                send(&mut rig, 11, 90);
                // These three recordings are rate-limited.
                for tsval in 12..15 {
                    send(&mut rig, tsval, 90);
                }
                began.elapsed() < LIMIT / 2
            });
            assert!(in_time, "{ATTEMPTS} times the limit was over too soon");
            thread::sleep(LIMIT + LIMIT / 10);
            // This TSval's first packet passed long ago. Recording it now would give far too short an RTT.
            send(&mut rig, 14, 90);
            answer(&mut rig, 91, 14);
            send(&mut rig, 15, 91);
            answer(&mut rig, 92, 15);
            let found: Vec<u32> =
                samples(&rig.agree("a rate limit")).iter().map(|sample| sample.identifier).collect();
            assert_eq!(found, [91, 15]);
        }
    }
}
